"""A course in its database: tables, settings, members and their sessions, the class list, quotas, backup."""
