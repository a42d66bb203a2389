"""What one point of a study is: a scenario, its keys with their ranges, the values of its axes, and the metrics read of it."""
