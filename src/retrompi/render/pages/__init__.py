"""A page for each kind of answer: a curve, a message, a critical path, a comparison, a study."""
