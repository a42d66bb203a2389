"""Numbers that are searched for: break-even points, boundaries, tolerances, sensitivities and optima, and how certain they are."""
