"""Machine rooms, one TOML file each; see `retrompi.spec.platform` for the keys."""
