"""The store as SQL sees it: its views and tables, taken from the code."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from retrompi.manual.markdown import ManualPage, escape, table
from retrompi.store.schema import METADATA, REVISION, VERSION_TABLE
from retrompi.store.views import EXAMPLES, VIEWS

__all__ = ["schema_page"]

_HEAD = """The store is an SQLite file or a PostgreSQL database (`--store`, `RETROMPI_STORE`), which any program that speaks SQL can read:
`sqlite3`, `psql`, [datasette](https://datasette.io), pandas, DuckDB. The views below are for that: their columns are named with units and
are kept from version to version. The tables behind them are retrompi's own and change with it.

```sh
sqlite3 -readonly ~/.local/share/retrompi/retrompi.db 'SELECT * FROM studies_v'
datasette ~/.local/share/retrompi/retrompi.db
psql postgresql://me@node1/retrompi -c 'SELECT * FROM studies_v'
```

Read only: what other programs write is not checked, and a run is known by a hash of all that determines it. On PostgreSQL names with
capitals are quoted (`"size_B"`); SQLite takes them both ways. A store made by an older version has no views until a retrompi that has them
opens it for writing.
"""


def schema_page() -> ManualPage:
    """The page."""
    parts = ["# The store in SQL", _HEAD, "## Views"]
    for view in VIEWS:
        parts += [f"### {view.name}", f"A row is {view.row}.",
                  table(["column", "what it is"], [[f"`{name}`", escape(what)] for name, what in view.columns.items()])]
    parts.append("## Examples")
    for example in EXAMPLES:
        parts += [example.question, f"```sql\n{example.query.strip()};\n```"]
    about = f"Revision {REVISION} of the schema, which the table `{VERSION_TABLE}` names. Deleting a run deletes the rows that hang on it."
    parts += ["## Tables", about, *_tables()]
    return ManualPage("schema.md", "The store in SQL", "The store in SQL", "\n\n".join(parts) + "\n")


def _tables() -> list[str]:
    parts = []
    for found in METADATA.sorted_tables:
        rows = []
        for column in found.columns:
            key = "key" if column.primary_key else ", ".join(f"→ `{f.column.table.name}.{f.column.name}`" for f in column.foreign_keys)
            rows.append([f"`{column.name}`", _kind(column.type), "" if column.nullable else "yes", key])
        parts += [f"### {found.name}", table(["column", "type", "never empty", "key"], rows)]
    return parts


def _kind(kind: sa.types.TypeEngine[Any]) -> str:
    length = getattr(kind, "length", None)
    return escape(type(kind).__name__.lower() + (f"({length})" if length else ""))
