"""A course: its members, work and marks in a database, and the studio served to a class.

`course` has its database and who belongs to it, `grades` what was reached, `works` the labs' works, `pages` what its people see beside
the studio, `lti` the way in from a learning platform; `serve` is the server.
"""
