"""Results of a class: records of checks, scores, marks as students see them, and exports to learning platforms."""
