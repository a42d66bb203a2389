"""Running a study: its definition, the plan of its runs, and the executors that simulate them."""
