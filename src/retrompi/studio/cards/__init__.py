"""What the package and the store have, as cards and tables: models, platforms, published statements, studies."""
