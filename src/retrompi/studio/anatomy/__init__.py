"""One message and one program: the jobs of anatomy and replay, and a message's path as words, diagram and animation."""
