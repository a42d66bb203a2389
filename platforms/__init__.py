"""Machine rooms, one TOML file each; see `retrompi.platform` for the keys."""
