"""Cards and tables of models, platforms, published statements and studies."""
