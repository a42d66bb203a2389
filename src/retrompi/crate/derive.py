"""All that follows from a crate's record, circumstances and inputs: tables, metadata, provenance, the page, the manifest.

Pure functions of their arguments: `retrompi.crate.verify` makes the same files again and compares them byte for byte.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

from retrompi.base.csv_safe import write_rows
from retrompi.crate import drawn, metadata, preview, prov
from retrompi.crate.container import MANIFEST, METADATA, manifest_of
from retrompi.crate.record import as_json
from retrompi.papers.judging.verdicts import NOT_DRAWN
from retrompi.sim.result import NUMBERS
from retrompi.spec.declare.result import PointRow, RankRow, outputs

__all__ = ["CIRCUMSTANCES", "RECORD", "complete", "results"]

RECORD, CIRCUMSTANCES = "record.json", "circumstances.json"

Row = Mapping[str, Any]

_RUN = ("run", "kind", "model", "platform", "mode", "overrides", "seed", "fidelity", "network", "workload", "workload_hash", "scenario",
        "parameters", "outcome", "detail", *NUMBERS, "model_hash", "platform_hash", "code_version", "identity")
_POINT = ("run", *outputs(PointRow))
_RANK = ("run", "rank", *outputs(RankRow))
_STAGE = ("run", "size_B", "position", "stage", "process", "seconds", "ps")
_VERDICT = ("id", "use", "verdict", "observed", "low", "high", "unit", "residual", "note", "runs", "functions")
_PARAMETER = ("name", "value", "text", "unit", "low", "high", "posterior_low", "posterior_high", "posterior_level", "posterior_of",
              "overridden", "source", "help")


def _csv(names: Sequence[str], rows: Sequence[Row]) -> bytes:
    out = io.StringIO()
    write_rows(out, names, rows)
    return out.getvalue().encode()


def results(record: Row) -> dict[str, bytes]:
    """The tables of a record: runs, points, ranks, stages, verdicts, points of the study, and each set of parameters."""
    runs = record["runs"]
    out = {"results/runs.csv": _csv(_RUN, runs)}
    for name, key, columns in (("points", "points", _POINT), ("ranks", "rank_times", _RANK), ("stages", "stages", _STAGE)):
        rows = [{"run": r["run"], **row} for r in runs for row in r[key]]
        if rows:
            out[f"results/{name}.csv"] = _csv(columns, rows)
    if record["statements"]:
        columns = (*_VERDICT, *(NOT_DRAWN if "uncertainty" in record else ()))
        out["results/verdicts.csv"] = _csv(columns, [
            {**s.get("agreement", {}), "id": s["id"], "use": s["use"], **s["verdict"], "verdict": s["verdict"]["word"],
             "runs": s["runs"], "functions": [f["name"] for f in s["functions"]]} for s in record["statements"]
        ])
    if record.get("bands"):
        out["results/intervals.csv"] = _csv(drawn.BAND, record["bands"])
    if record["kind"] == "study":
        axes = list(dict.fromkeys(k for r in record["rows"] for k in r["axes"]))
        told = {r["position"]: r for r in (record["intervals"] or {}).get("rows", ())}
        more = ("value", "low", "high") if told else ()
        out["results/study.csv"] = _csv(
            ("position", *axes, "outcome", "run", *more),
            [{**r["axes"], **{k: r[k] for k in ("position", "outcome", "run")}, **{k: told.get(r["position"], {}).get(k) for k in more}}
             for r in record["rows"]],
        )
    for each in record["parameters"]:
        rows = [{**r, **{f"posterior_{k}": v for k, v in r.get("posterior", {}).items()}} for r in each["rows"]]
        out[f"parameters/set-{each['set']}.csv"] = _csv(_PARAMETER, rows)
    return out


def _readme(record: Row) -> bytes:
    return f"""# {record["title"]}

An evidence crate: a Workflow Run RO-Crate, written by retrompi {record["software"]["version"]} (`{record["software"]["code_version"]}`).
`ro-crate-preview.html` leads from each published statement to the parameters, the code, the runs and the verdict;
`{METADATA}` and `prov.json` say the same to programs.

- `sha256sum -c {MANIFEST}` checks every file without retrompi.
- `retrompi crate verify` on this folder or its zip also simulates every run again and compares every number.

`{RECORD}` has what can be made again from the inputs, `{CIRCUMSTANCES}` what cannot: who, when, on which machine.
""".encode()


def complete(record: Row, circumstances: Row, inputs: Mapping[str, bytes]) -> dict[str, bytes]:
    """All files of the crate. Raises LookupError, TypeError, ValueError or AttributeError for a record that is none."""
    files = {**inputs, **results(record), RECORD: as_json(record), CIRCUMSTANCES: as_json(circumstances), "README.md": _readme(record),
             "codemeta.json": as_json(record["software"]["codemeta"])}
    files["prov.json"] = as_json(prov.document(record, circumstances, files))
    files[preview.NAME] = preview.page(record, circumstances, files)
    files[METADATA] = as_json(metadata.graph(record, circumstances, files))
    return files | {MANIFEST: manifest_of(files)}
