"""Stored studies as they are read: rows, views and tables, their intervals, and the cautions beside them."""
