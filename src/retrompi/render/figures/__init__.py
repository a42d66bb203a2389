"""Figures from points: curves, bars, bands, published statements as marks, published against simulated, and sweeps."""
