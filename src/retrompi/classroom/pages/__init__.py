"""Access to a course, and its pages: signing in, a member's data, the teacher's pages, the start of a class."""
