"""Experiments, one TOML file each; see `retrompi.scenario` for the keys."""
