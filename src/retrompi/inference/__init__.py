"""Bayesian inference of parameters: emulators of the simulator, likelihood, posterior, evidence, and tests that intervals cover."""
