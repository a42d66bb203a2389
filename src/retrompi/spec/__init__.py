"""The typed and validated input of a simulation: platforms, channels, parameters of models, cross traffic and further jobs."""
