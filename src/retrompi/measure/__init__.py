"""Real measurements beside simulation: recording, launching, measuring this machine, fitting and comparing."""
