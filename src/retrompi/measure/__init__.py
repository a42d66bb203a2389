"""The real world beside the simulated one: recording, launching, measuring this machine, fitting and comparing."""
