"""A paper's study run again: what is wrong in its folder, the runs, a digest, and how far statements agree with what is uncertain."""
