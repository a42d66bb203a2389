"""One point of a study: its scenario, the keys that may vary and their ranges, the axes, and the metrics of a run."""
