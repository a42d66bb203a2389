"""The engine's input: C++ structs and tables generated from the declarations, and a model's parameters compiled into them."""
