"""Running what was asked: the engine's worker processes, the fidelity ladder, and what a run reports."""
