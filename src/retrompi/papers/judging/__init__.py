"""Judging published statements: evaluators of claims, checks of facts and curves, and the verdicts they give."""
