"""The uncertain numbers of a run and draws of them: priors, posteriors, populations of machines, and ensembles of runs."""
