"""What the engine is handed: structs and tables generated from the declarations, and a model's parameters compiled to them."""
