"""The lowest layer: units, errors, folders, TOML, CSV cells, signals. Imports nothing else of the project."""
