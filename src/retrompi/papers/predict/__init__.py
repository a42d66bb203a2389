"""Blind predictions and their scores: transfer to other machines, interventions, and the matrix of all sources."""
