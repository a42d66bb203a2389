"""The works of members and their checks: the shelf, checks that are asked for and owed, answers, predictions, marks, likeness."""
