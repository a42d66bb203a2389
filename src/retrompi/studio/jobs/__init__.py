"""Work in separate processes: the queue of jobs, which of them begin and pause, their limits, and what the pages share of them."""
