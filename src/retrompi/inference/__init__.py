"""What the data say about the parameters: emulated simulations, likelihood, posterior, evidence, and the check that intervals hold."""
