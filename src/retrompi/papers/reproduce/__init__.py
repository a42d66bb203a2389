"""Reproducing a paper: inspection of its folder, the runs of its study, a digest, and agreement under uncertainty."""
