"""Comparisons: runtimes on one program, pairs of runtimes and platforms, jobs beside each other, and two stored runs."""
