"""Studies as files: exported with their provenance, packed and opened again, and stores merged."""
