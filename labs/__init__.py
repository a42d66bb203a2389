"""Teaching labs, one folder each; the package `retrompi.labs` runs them, and docs/labs.md says how to write one."""
