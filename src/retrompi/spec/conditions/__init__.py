"""Conditions of a run beside its runtime and platform: limits, further jobs, cross traffic and failures, a timed section, the network's
model."""
