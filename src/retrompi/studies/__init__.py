"""Studies: many runs from one question, and answers out of them."""
