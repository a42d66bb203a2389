"""Fits to claims and to measured curves: the free parameters, the optimiser, and the fits of models, curves and machines."""
