"""What is said of a runtime: overrides of its parameters, where a number is stated, its legend, where it can run, code of users."""
