"""Studies as files: export with provenance, packing and unpacking, and merging of stores."""
