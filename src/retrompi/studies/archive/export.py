"""A study's results as CSV, Parquet or JSON, one row for each run or each point of its curve. Units are in the column names.

CSV cannot hold the definition, which is written to FILE.meta.json; the other two formats include it.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from textwrap import indent
from typing import IO, Any

from retrompi.base.csv_safe import write_rows
from retrompi.base.errors import InputError, UsageError, nearest
from retrompi.spec.declare.result import OutputField, PointRow, RankRow, outputs
from retrompi.spec.declare.result import metrics as counters
from retrompi.studies.archive.provenance import networks
from retrompi.studies.define.axes import ABSENT
from retrompi.studies.define.metrics import fact_of
from retrompi.studies.read.results import axes_of
from retrompi.studies.read.stored_study import StoredStudy
from retrompi.studies.read.view import ViewAxis, axis_of

__all__ = ["FORMATS", "columns", "metadata", "print_to", "table", "write"]

FORMATS = ("csv", "json", "parquet")
_SPELLED = {"B": "B", "s": "s", "B/s": "Bps", "s/B": "s_per_B", "Hz": "Hz", "flop/s": "flops", "1": "", "probability": "share"}
"""Base unit -> suffix of a column's name."""


def _counter_column(declared: OutputField) -> str:
    """The name of a counter's column."""
    unit = _SPELLED.get(declared.unit, "")
    return f"{declared.name}_{unit}" if unit else declared.name


_RUN: Mapping[str, tuple[str, str]] = {
    "study": ("str", "name of the study"),
    "position": ("int", "number of the point"),
    "outcome": ("str", "how the run ended; error: there is no run"),
    "reason": ("str", "why it did not complete"),
    "run_id": ("int", "run in the store"),
    "model": ("str", "runtime model"),
    "platform": ("str", "machine room"),
    "mode": ("str", "placement of the ranks"),
    "seed": ("int", "seed of every draw"),
    "fidelity": ("str", "rung of the fidelity ladder"),
    "ranks": ("int", "ranks"),
    "time_s": ("float", "simulated time of the job"),
    "section_s": ("float", "simulated time of the section that the scenario times"),
    **{name: ("float", o.largest) for name, o in outputs(RankRow).items() if o.largest},
    **{_counter_column(o): ("int", o.title) for o in counters().values()},
    "wall_s": ("float", "what simulating took"),
    "model_hash": ("str", "SHA-256 of the model"),
    "platform_hash": ("str", "SHA-256 of the platform, overrides included"),
    "trace_hash": ("str", "SHA-256 of the trace, or of the generator's arguments"),
    "code_version": ("str", "code that simulated it"),
}
_CURVE: Mapping[str, tuple[str, str]] = {
    name: ("int" if o.kind == "counter" else "float", o.title) for name, o in outputs(PointRow).items()
}
Row = dict[str, Any]
_GROUP = 50_000
"""Rows of a row group of a Parquet file."""


def _axes(found: StoredStudy) -> list[ViewAxis]:
    return [axis_of(k, [str(r.get(k, ABSENT)) for r in found.rows]) for k in axes_of(found.definition)]


def _column(axis: ViewAxis) -> str:
    unit = _SPELLED.get(axis.unit, "")
    return f"{axis.key}_{unit}" if unit else axis.key


def _axis_column(axis: ViewAxis) -> str:
    # A run has a column of the same name; the study's value gets another name.
    return f"axis.{axis.key}" if axis.key in _RUN else _column(axis)


def columns(found: StoredStudy, points: bool = False) -> dict[str, tuple[str, str]]:
    """Column -> (type: str, int or float; description), in order. A numeric axis is in its base unit."""
    out: dict[str, tuple[str, str]] = {"study": _RUN["study"], "position": _RUN["position"]}
    for a in _axes(found):
        kind = "str" if not a.numbers else "int" if all(n == int(n) for n in a.numbers.values()) and a.unit in ("1", "B") else "float"
        out[_axis_column(a)] = (kind, f"axis {a.key}{f', {a.unit}' if a.unit not in ('', '1') else ''}")
    return {**out, **_RUN, **(_CURVE if points else {})}


def table(found: StoredStudy, points: bool = False) -> Iterator[Row]:
    """The rows one by one, with a key for every column: one for each point of the study or, with ``points``, of its curves. Missing values
    are None.

    With ``points``, a run without a curve has one row, so that it is not lost.
    """
    axes = _axes(found)
    known = columns(found, points)
    for r in found.rows:
        row: Row = dict.fromkeys(known)
        run = found.runs.get(r["run_id"]) if r["run_id"] is not None else None
        ranks = found.ranks.get(r["run_id"], ()) if run else ()
        if run is not None:
            row |= {k: run.get(k) for k in _RUN if k in run}
            row |= {"section_s": fact_of(run, "facts.section.seconds")}
            row |= {_counter_column(o): fact_of(run, o.path) for o in counters().values()}
            row |= {k: max((x[k] for x in ranks), default=None) for k, o in outputs(RankRow).items() if o.largest}
        row |= {"study": found.study["name"], "position": r["position"], "outcome": r["outcome"], "reason": r["reason"] or None,
                "run_id": r["run_id"]}
        for a in axes:
            text = str(r.get(a.key, ABSENT))
            value: Any = None if text == ABSENT else a.numbers.get(text) if a.numbers else text
            row[_axis_column(a)] = int(value) if known[_axis_column(a)][0] == "int" and value is not None else value
        row = {k: _as_kind(known[k][0], v) for k, v in row.items() if k in known}
        curve = found.curves.get(r["run_id"], ()) if points and run is not None else ()
        yield from [{**row, **{k: _as_kind(kind, p[k]) for k, (kind, _) in _CURVE.items()}} for p in curve] or [row]


def _as_kind(kind: str, value: Any) -> Any:
    return value if value is None else {"str": str, "int": int, "float": float}[kind](value)


def metadata(found: StoredStudy, points: bool = False) -> dict[str, Any]:
    """The study's definition and hash, versions, and a description of every column."""
    from retrompi.store import code_version

    study = found.study
    return {
        "study": {k: study[k] for k in ("name", "hash", "definition")},
        "code_versions": sorted({str(r["code_version"]) for r in found.versions}),
        "networks": list(networks(found.versions)),
        "exported_by": f"retrompi {code_version()}",
        "columns": {k: {"type": kind, "what": what} for k, (kind, what) in columns(found, points).items()},
    }


def print_to(out: IO[str], found: StoredStudy, kind: str, points: bool = False) -> None:
    """Writes the rows as CSV, or as JSON with the metadata, one by one: a study may have a million."""
    if kind == "csv":
        write_rows(out, list(columns(found, points)), table(found, points))
        return
    out.write(_json(metadata(found, points)).removesuffix("\n}") + ',\n "rows": [')
    for i, row in enumerate(table(found, points)):
        out.write((",\n" if i else "\n") + indent(_json(row), "  "))
    out.write("\n ]\n}\n")


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False)


def write(found: StoredStudy, target: Path, kind: str | None = None, points: bool = False) -> list[Path]:
    """Write the rows to ``target`` and return the files written. ``kind`` is one of `FORMATS`, by default that of the name's suffix.

    Raises UsageError for another kind or a missing package, InputError when it cannot be written.
    """
    kind = kind or target.suffix.removeprefix(".").lower()
    if kind not in FORMATS:
        raise UsageError(f"no export format '{kind}'{nearest(kind, FORMATS)}", code="unknown-format")
    about = metadata(found, points)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if kind == "parquet":
            _parquet(table(found, points), columns(found, points), about, target)
            return [target]
        with target.open("w", encoding="utf-8", newline="\n") as out:
            print_to(out, found, kind, points)
        if kind == "json":
            return [target]
        beside = target.with_name(target.name + ".meta.json")
        beside.write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return [target, beside]
    except OSError as error:
        raise InputError(f"cannot write the export: {error.strerror or error}", target, code="unwritable-file") from error


def _parquet(rows: Iterable[Row], known: Mapping[str, tuple[str, str]], about: Mapping[str, Any], target: Path) -> None:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise UsageError("Parquet needs the package pyarrow: pip install 'retrompi[parquet]'; .csv and .json need nothing",
                         code="missing-tool") from None
    kinds = {"str": pa.string(), "int": pa.int64(), "float": pa.float64()}
    schema = pa.schema([pa.field(k, kinds[kind], metadata={"what": what}) for k, (kind, what) in known.items()],
                       metadata={"retrompi": json.dumps(about, ensure_ascii=False)})
    left = iter(rows)
    with parquet.ParquetWriter(target, schema) as out:
        while some := list(itertools.islice(left, _GROUP)):
            out.write_table(pa.Table.from_pylist(some, schema=schema))
