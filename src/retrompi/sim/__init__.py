"""One simulation: the engine's worker processes, the levels of fidelity, and the results."""
