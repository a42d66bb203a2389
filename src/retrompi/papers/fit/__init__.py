"""Fits to claims and to measured curves: what is free, the optimiser, and the fits of a model, of curves and of machines."""
