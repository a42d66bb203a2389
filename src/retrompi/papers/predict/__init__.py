"""Blind predictions and what they are held against: scores, transfer to other machines, interventions, the matrix of all sources."""
