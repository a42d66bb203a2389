"""Experiments, one TOML file each; see `retrompi.studies.scenario` for the keys."""
