"""Facts about a runtime besides its model: overrides, the place where a number is stated, its legend, the systems it runs on, code of
users."""
