"""What a run has beside its runtime and platform: bounds, further jobs, traffic and failures, a timed section, the network's laws."""
