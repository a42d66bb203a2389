"""A lab in the studio: its text in steps, its forms, checks, programs, session and slides."""
