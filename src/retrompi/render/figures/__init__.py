"""Points to figures: curves, bars, bands, marks of statements, published against simulated, and sweeps."""
