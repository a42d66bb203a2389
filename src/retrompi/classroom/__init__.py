"""A course: members, their works and marks in a database, and the studio served to a class.

`database` opens it, `schema` has its tables, `members` who may enter, `shelf` keeps the labs' works, `serve` is the server.
"""
