"""The database of a course: tables, settings, members and their sessions, the class list, quotas, backup."""
