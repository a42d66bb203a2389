"""Alembic's scripts: `env.py` and one file per change of the schema."""
