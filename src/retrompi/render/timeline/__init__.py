"""The timeline of a run: tiles of any resolution, its chart, and its page."""
