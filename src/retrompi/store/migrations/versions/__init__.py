"""One file per change of the schema, in the order of their revisions."""
