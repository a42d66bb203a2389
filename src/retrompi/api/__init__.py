"""The Python interface: the same questions and answers as the commands, as functions and objects. Its names are those of `retrompi`."""
