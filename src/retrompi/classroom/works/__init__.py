"""Members' work on labs: where it is kept, checks that wait for their turn, answers, predictions, marks, and similarity between
students."""
