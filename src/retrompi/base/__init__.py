"""What everything stands on: units, errors, folders, TOML, CSV cells, signals. Imports nothing else of the project."""
