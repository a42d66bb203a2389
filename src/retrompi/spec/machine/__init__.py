"""Platform files: the library of hosts and networks, links and topologies, placements, computation by kernel."""
