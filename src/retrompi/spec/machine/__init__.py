"""Platforms out of files: the library of hosts and networks, links and their shapes, placements, computation by kernel."""
