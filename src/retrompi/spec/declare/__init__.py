"""Declarations from which code, files and pages are derived: fields with unit and bounds, MPI calls, results, numbers, curves,
parameters, sources."""
