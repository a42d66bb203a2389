"""Common to questions and results: opening the store, values as text, rows as a pandas table, and their display in notebooks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from inspect import isfunction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrompi.api.checking import check_arguments
from retrompi.base.errors import UsageError
from retrompi.sim.cautions import Caution, mark

if TYPE_CHECKING:
    import pandas as pd

    from retrompi.store import Store

__all__ = ["Progress", "Report", "Row", "Table", "as_store", "frame_of", "reporting", "table_html", "texts"]

Row = Mapping[str, Any]
Report = Callable[[int, int, str], None]
"""Is called with (done, all, what)."""
Progress = Report | bool
"""A function to be called, or True for a bar of tqdm in a notebook or a terminal."""
_SHOWN = 12


def as_store(store: Store | Path | str | None) -> Store:
    """The store itself, or the one at a path or URL; None: that of the commands. Raises StoreError."""
    from retrompi.store import open_store

    return open_store(store) if store is None or isinstance(store, str | Path) else store


def texts(values: Mapping[str, str | float]) -> dict[str, str]:
    """Overrides as texts."""
    return {key: str(value) for key, value in values.items()}


def _silent(done: int, total: int, what: str = "") -> None:
    """Report nothing."""


@contextmanager
def reporting(progress: Progress | None, label: str) -> Iterator[Report]:
    """The function to be called: that of ``progress`` itself, a bar's, or one that does nothing. UsageError without tqdm."""
    if not isinstance(progress, bool) and progress is not None:
        yield progress
        return
    if not progress:
        yield _silent
        return
    try:
        from tqdm import tqdm  # not tqdm.auto: its bar of a notebook needs ipywidgets, this one nothing
    except ImportError:
        told = "a progress bar needs tqdm: pip install 'retrompi[notebook]'; progress also takes a function of (done, all, what)"
        raise UsageError(told, code="missing-tool") from None
    with tqdm(total=None, desc=label) as bar:

        def report(done: int, total: int, what: str = "") -> None:
            bar.total = total
            bar.set_postfix_str(what, refresh=False)
            bar.update(done - bar.n)

        yield report


def frame_of(rows: Sequence[Row], columns: Sequence[str] = ()) -> pd.DataFrame:
    """The rows as a pandas table, with these columns or those of the rows. UsageError without pandas."""
    try:
        import pandas as pd
    except ImportError:
        told = "a table needs pandas: pip install 'retrompi[notebook]'; the same rows are in .rows"
        raise UsageError(told, code="missing-tool") from None
    return pd.DataFrame([dict(r) for r in rows], columns=list(columns) or None)


def table_html(rows: Sequence[Row], columns: Sequence[str]) -> str:
    """A small table in HTML; the middle of a long one is left out, which a line says."""
    cut = len(rows) > _SHOWN
    half = _SHOWN // 2
    shown = [*rows[:half], *rows[-half:]] if cut else list(rows)
    head = "".join(f"<th>{escape(c)}</th>" for c in columns)
    lines = ["<tr>" + "".join(f"<td>{escape(_text(row.get(c)))}</td>" for c in columns) + "</tr>" for row in shown]
    if cut:
        lines.insert(half, f"<tr><td colspan='{len(columns)}'>… {len(rows) - _SHOWN} more</td></tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _text(value: Any) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


class Table:
    """A table of named columns: the base of all results. Its methods check the types of their arguments."""

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        for name, member in list(vars(cls).items()):
            if isfunction(member) and not name.startswith("_"):
                setattr(cls, name, check_arguments(member))

    @property
    def title(self) -> str:
        """The result in a few words, e.g. for a heading."""
        raise NotImplementedError

    @property
    def rows(self) -> Sequence[Row]:
        """The rows; a column has the same unit in all of them."""
        raise NotImplementedError

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(dict.fromkeys(k for row in self.rows for k in row))

    @property
    def frame(self) -> pd.DataFrame:
        """The rows as a pandas table. UsageError without pandas (extra ``notebook``)."""
        return frame_of(self.rows, self.columns)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def warnings(self) -> tuple[Caution, ...]:
        """Cautions that the rows do not show, such as a parameter outside its calibrated range: objects with a stable ``code``, a ``text``,
        ``about`` (which of several runs) and ``minor``. The commands print the same ones."""
        return ()

    def __repr__(self) -> str:
        codes = "".join(f"; {code}" for code in dict.fromkeys(c.code for c in self.warnings if not c.minor))
        return f"<{type(self).__name__}: {self.title}, {len(self.rows)} rows{codes}>"

    def _repr_html_(self) -> str:
        warnings = self.warnings
        marked = f" <small>{escape(mark(warnings).strip())}</small>" if mark(warnings) else ""
        lines = "".join(f"<p>caution: {escape(str(c))}</p>" for c in warnings if not c.minor)
        return f"<p><b>{escape(self.title)}</b>{marked}</p>{lines}{table_html(self.rows, self.columns)}"
