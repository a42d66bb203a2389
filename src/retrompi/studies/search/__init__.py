"""Searches: break-even points, tolerances, sensitivities and optima, each with its certainty."""
