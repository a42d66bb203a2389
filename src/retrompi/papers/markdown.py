"""The generated parts of docs/validation*, docs/second-atlas.md and docs/uncertainty/, so that prose and program cannot drift apart.

A part stands between ``<!-- name -->`` and ``<!-- /name -->``; `fill` replaces it. ``python -m retrompi.papers.markdown FILE`` writes
those that the file has: readings, checks, runtimes, and the verdicts of the store (simulating what is missing).
"""

from __future__ import annotations

import csv
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from retrompi.base import paths
from retrompi.base.errors import InputError
from retrompi.base.files import read_text
from retrompi.papers.judging.curve_checks import times_of
from retrompi.papers.judging.curve_verdicts import errors
from retrompi.papers.judging.verdicts import Verdict, summary
from retrompi.papers.predict import transfer
from retrompi.papers.predict.interventions import effects
from retrompi.papers.predict.matrix import MatrixCell, Tally, cells
from retrompi.papers.reproduce.coverage import coverage_table, outside_table, shipped_rows
from retrompi.papers.reproduce.reproduction import Reproduction, run_papers
from retrompi.papers.statements.claims import checks, load, paper_key
from retrompi.papers.statements.curves import of, simulate_times
from retrompi.papers.statements.metrics import READINGS
from retrompi.papers.statements.paper import all_papers
from retrompi.spec import registry
from retrompi.store import open_store

__all__ = ["check_table", "evidence_rows", "evidence_table", "fill", "intervention_table", "layer_table", "matrix_table", "number_text",
           "parts", "reading_table", "runtime_table", "verdict_table"]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(" ".join(c.split()).replace("|", "\\|") for c in cells) + " |"

    return "\n".join([line(head), "|" + "---|" * len(head), *map(line, rows)])


def reading_table() -> str:
    """The papers' wording and its readings."""
    return table(("the paper's words", "read as"), READINGS.items())


def _how(claim_id: str) -> str:
    parts = []
    for c in checks()[claim_id]:
        what = c.get("metric") or c.get("feature") or c.get("relation") or c.get("path") or ""
        parts.append(" ".join(filter(None, (c["kind"], str(c.get("shape", "")), str(what), str(c.get("mode", ""))))))
    return "; ".join(parts)


def check_table(page: Path) -> str:
    """The checks of every claim of the papers whose verdicts are a part of ``page``, and the reading of its words."""
    keys = {name.removeprefix("verdicts ") for name in parts(page)}
    found = [c for c in load() if c.id in checks() and paper_key(c.paper) in keys]
    return table(
        ("claim", "use", "system", "what is published", "check", "reading"),
        (
            (
                c.id,
                c.use,
                c.system,
                f"{c.observable}: {c.value}",
                _how(c.id),
                " ".join(str(k.get("reading", k.get("why", ""))) for k in checks()[c.id]),
            )
            for c in found
        ),
    )


def number_text(value: float | str | None) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return f"{value:.0f}" if abs(value) >= 1000 and value == int(value) else f"{value:.4g}"


def _bounds(v: Verdict) -> str:
    return number_text(v.low) if v.low == v.high else f"{number_text(v.low)}..{number_text(v.high)}"


def verdict_table(verdicts: Sequence[Verdict]) -> str:
    """Counts, then every judged or excluded claim with what was observed; the unjudged ones are listed with their reason."""
    lines = [f"- {s}" for s in summary(verdicts) if s.use != "context"]
    shown = [v for v in verdicts if v.verdict != "unjudged" or v.use == "exclude"]
    rows = table(
        ("claim", "use", "verdict", "observed", "published", "unit", "contradiction"),
        (
            (
                v.id,
                v.use,
                f"**{v.verdict}**" if v.verdict == "fail" else v.verdict,
                number_text(v.observed),
                _bounds(v),
                v.unit,
                v.contradiction,
            )
            for v in shown
        ),
    )
    by_reason: dict[str, list[str]] = {}
    for v in verdicts:
        if v.verdict == "unjudged" and v.use in ("calibrate", "validate"):
            by_reason.setdefault(v.note, []).append(v.id)
    rest = [f"- {', '.join(ids)}: {reason}" for reason, ids in by_reason.items()]
    return "\n".join([*lines, "", rows, "", "Not judged, and why:", "", *rest])


def layer_table(studies: Sequence[Reproduction]) -> str:
    """The curves of ``studies`` to which machines are fitted: errors of their points, and the latency of 8 B."""
    rows = []
    for study in studies:
        for curve in (c for c in of(study.paper) if c.use == "calibrate"):
            got = times_of(study.facts["curves"][curve.name])
            found = errors(curve, curve.points, got)
            assert found is not None, f"{curve.name} has no point that judges"
            printed = "-" if curve.latency is None else number_text(curve.latency[0] * 1e6)
            rows.append((curve.title, f"`{curve.platform}`", str(found.points), f"{found.median:.1%}", f"{found.largest:.0%}",
                         f"{found.largest_at} B", f"{simulate_times(curve, [8])[8] * 1e6:.3g} / {printed}"))
    head = ("curve", "machines", "points", "median error", "largest", "at", "latency, us: simulated / published")
    return table(head, rows)


def fill(path: Path, name: str, text: str) -> bool:
    """Replace the part ``name`` of a file; returns whether it changed. InputError if the part is missing."""
    old = path.read_text(encoding="utf-8")
    pattern = re.compile(rf"(<!-- {re.escape(name)} -->).*?(<!-- /{re.escape(name)} -->)", re.S)
    new, count = pattern.subn(lambda m: f"{m[1]}\n\n{text}\n\n{m[2]}", old)
    if count != 1:
        raise InputError(f"needs exactly one part '<!-- {name} -->' ... '<!-- /{name} -->', has {count}", path)
    if new != old:
        path.write_text(new, encoding="utf-8")
    return new != old


# --- docs/second-atlas.md ----------------------------------------------------------------------------------------------------------


def evidence_rows() -> list[dict[str, str]]:
    """The rows of ``evidence.csv`` that judge runtimes and that no fit sees."""
    text = read_text(paths.reference_dir() / "period" / "evidence.csv")
    return [r for r in csv.DictReader(text.splitlines()) if r["use"] == "validate"]


def evidence_table(verdicts: Iterable[Verdict]) -> str:
    """A row for each runtime of `evidence_rows`: how many are judged and hold, which do not, and why others are not judged."""
    found = {v.id: v for v in verdicts}
    by_runtime: dict[tuple[str, str], list[dict[str, str]]] = {}
    for r in evidence_rows():
        by_runtime.setdefault((r["system"].partition(" (")[0], r["source"].partition(",")[0]), []).append(r)
    rows, passed, judged = [], 0, 0
    for (runtime, source), mine in by_runtime.items():
        words = {r["id"]: found[r["id"]].verdict if r["id"] in found else "" for r in mine}
        hold, fail = ([i for i, w in words.items() if w == what] for what in ("pass", "fail"))
        rest: dict[str, list[str]] = {}
        for r in mine:
            if words[r["id"]] not in ("pass", "fail"):
                rest.setdefault(found[r["id"]].note if r["id"] in found else "no check", []).append(r["id"])
        passed, judged = passed + len(hold), judged + len(hold) + len(fail)
        why = "; ".join(f"{_span(ids)}: {note}" for note, ids in rest.items())
        count = f"{len(hold)} of {len(hold) + len(fail)}" if hold or fail else ""
        rows.append((runtime, source, str(len(mine)), count, " ".join(fail), why))
    head = ("runtime", "source", "rows", "hold, of those judged", "do not hold", "not judged")
    return f"{passed} of {judged} judged rows hold.\n\n{table(head, rows)}"


def _span(ids: Sequence[str]) -> str:
    return ids[0] if len(ids) == 1 else f"{ids[0]} to {ids[-1]} ({len(ids)})" if len(ids) > 2 else " ".join(ids)


def intervention_table(verdicts: Iterable[Verdict]) -> str:
    """The published interventions and their simulated effects."""
    def match_text(yes: bool | None) -> str:
        return "" if yes is None else "as published" if yes else "**not as published**"

    rows = []
    for e in effects(verdicts):
        apart = "kept apart" if "/" in e.before else "no row"
        published = apart if e.published is None else f"x {e.published:.2f} ({e.low:.2f} .. {e.high:.2f})"
        simulated = "not simulated" if e.simulated is None else f"x {e.simulated:.2f}"
        rows.append((e.title, f"`{e.option}`", f"{e.before}, {e.after}", published, simulated, match_text(e.direction), match_text(e.size)))
    return table(("intervention", "option", "rows or curves", "published", "simulated", "direction", "size"), rows)


def runtime_table() -> str:
    """Every runtime that comes with retrompi: release, variants, where its constants come from, and the source code that they cite."""
    rows = []
    names = registry.model_names()
    for name in (n for n in names if ":" not in n):
        cls = registry.model(name)
        sources = [p.source for p in cls.params().values()]
        kinds = Counter(s.partition(":")[0] for s in sources)
        counts = ", ".join(f"{kinds[k]} {word}" for k, word in _SOURCES.items() if kinds[k])
        cited = [re.match(r"code:([^,:;]+)[,:]", s) for s in sources]
        code = dict.fromkeys(m[1].strip() for m in cited if m)
        variants = " ".join(f"`:{n.partition(':')[2]}`" for n in names if n.startswith(f"{name}:"))
        rows.append((f"`{name}`", cls.title, cls.version, cls.years, variants, f"{len(sources)}: {counts}", "; ".join(code)))
    return table(("model", "runtime", "release", "years", "variants", "constants by their source", "source code"), rows)


_SOURCES = {"paper": "papers", "doc": "documents", "code": "source code", "fit": "fitted", "assumed": "assumed"}


def matrix_table(found: Iterable[MatrixCell]) -> str:
    """The matrix in short: a row for each runtime, and on how many machines and networks it is judged, fitted or predicted blind."""
    by_runtime: dict[str, list[MatrixCell]] = {}
    for c in found:
        by_runtime.setdefault(c.model, []).append(c)
    rows = []
    for runtime, mine in by_runtime.items():
        texts = []
        for what in ("judged", "fitted"):
            there = [getattr(c, what) for c in mine if getattr(c, what).all]
            texts.append(f"{sum(there, Tally())} on {len(there)}" if there else "")
        blind = [c.blind for c in mine if c.blind]
        texts.append(f"{sum(blind)} curves on {len(blind)}" if blind else "")
        rows.append((f"`{runtime}`", *texts, str(sum(c.state == "not known" for c in mine) or "")))
    return table(("runtime", "judged: hold, on how many machines and networks", "fitted", "predicted blind", "no number known"), rows)


def parts(path: Path) -> list[str]:
    """The names of the parts of a file."""
    return re.findall(r"<!-- /([^>]+?) -->", path.read_text(encoding="utf-8"))


def main(argv: Sequence[str]) -> int:
    """Fill every part of the file named by the first argument from the shipped tables and the store."""
    path = Path(argv[0])
    wanted = parts(path)
    plain: Mapping[str, Callable[[], str]] = {
        "readings": reading_table, "checks": lambda: check_table(path), "runtimes": runtime_table,
        "coverage": lambda: coverage_table(shipped_rows(), table), "outside": lambda: outside_table(shipped_rows(), table),
    }
    for name in wanted:
        if name in plain:
            fill(path, name, plain[name]())
    if not any(name in ("evidence", "layers", "interventions", "matrix") or name.startswith("verdicts ") for name in wanted):
        return 0
    keys = [key for key, paper in all_papers().items() if wanted != ["layers"] or paper.curves]
    studies = run_papers(keys, open_store(), keep=False)
    verdicts = [v for s in studies for v in s.verdicts]
    words = {v.id: v.verdict for v in verdicts}
    of_all: Mapping[str, Callable[[], str]] = {
        "evidence": lambda: evidence_table(verdicts),
        "layers": lambda: layer_table(studies),
        "interventions": lambda: intervention_table(verdicts),
        "matrix": lambda: matrix_table(cells(transfer.with_verdicts(transfer.shipped_rows(), words), words)),
        **{f"verdicts {s.paper.key}": lambda s=s: verdict_table(s.verdicts) for s in studies},  # type: ignore[misc]
    }
    for name in wanted:
        if name in of_all:
            fill(path, name, of_all[name]())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
