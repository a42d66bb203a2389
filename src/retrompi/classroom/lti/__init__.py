"""LTI 1.3: platforms, launches, tokens, the addresses, and the scores that are sent."""
