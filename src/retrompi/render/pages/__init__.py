"""One page for each answer: a curve, a message, a path, a comparison, a study."""
