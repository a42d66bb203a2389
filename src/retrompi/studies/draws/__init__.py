"""Draws of the uncertain numbers of a run: priors, posteriors, populations of machines, and ensembles of runs."""
