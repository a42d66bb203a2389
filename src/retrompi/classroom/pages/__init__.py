"""Who may enter, and the course's own pages: its doors, a member's data, the teacher's pages, the start of a class."""
