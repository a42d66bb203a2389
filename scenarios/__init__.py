"""Experiments, one TOML file each; see `retrompi.studies.define.scenario` for the keys."""
