"""Declarations that others are made from: fields with unit and bounds, calls, results and outcomes, numbers, curves, parameters,
sources."""
