"""What the papers state and how it is judged: claims, checks, experiments and pages as data; the code is `retrompi.papers`."""
