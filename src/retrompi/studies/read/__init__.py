"""Reading a stored study: rows, views and tables, intervals, and the cautions that belong to its numbers."""
