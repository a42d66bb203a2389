"""Work in separate processes: the queue of jobs, scheduling and pausing, limits, and the state that pages share."""
