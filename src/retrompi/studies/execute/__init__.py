"""A study as it is run: its definition, its plan, and the executors that simulate its points."""
