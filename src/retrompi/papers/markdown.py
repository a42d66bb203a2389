"""The generated parts of docs/validation.md, so that prose and program cannot drift apart.

A part stands between ``<!-- name -->`` and ``<!-- /name -->``; `fill` replaces it. ``python -m retrompi.papers.markdown
docs/validation.md`` writes readings, checks and the verdicts of the store (simulating what is missing).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from retrompi.base.errors import InputError
from retrompi.papers.claims import checks, load
from retrompi.papers.metrics import READINGS
from retrompi.papers.verdicts import Verdict, summary

__all__ = ["check_table", "fill", "reading_table", "verdict_table"]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(" ".join(c.split()).replace("|", "\\|") for c in cells) + " |"

    return "\n".join([line(head), "|" + "---|" * len(head), *map(line, rows)])


def reading_table() -> str:
    """The papers' wording and its readings."""
    return _table(("the paper's words", "read as"), READINGS.items())


def _how(claim_id: str) -> str:
    parts = []
    for c in checks()[claim_id]:
        what = c.get("metric") or c.get("feature") or c.get("relation") or c.get("path") or ""
        parts.append(" ".join(filter(None, (c["kind"], str(c.get("shape", "")), str(what), str(c.get("mode", ""))))))
    return "; ".join(parts)


def check_table() -> str:
    """The checks of every claim, and the reading of its words."""
    found = [c for c in load() if c.id in checks()]
    return _table(
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


def _text(value: float | str | None) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return f"{value:.0f}" if abs(value) >= 1000 and value == int(value) else f"{value:.4g}"


def _bounds(v: Verdict) -> str:
    return _text(v.low) if v.low == v.high else f"{_text(v.low)}..{_text(v.high)}"


def verdict_table(verdicts: Sequence[Verdict]) -> str:
    """Counts, then every judged or excluded claim with what was observed; the unjudged ones are listed with their reason."""
    lines = [f"- {s}" for s in summary(verdicts) if s.use != "context"]
    shown = [v for v in verdicts if v.verdict != "unjudged" or v.use == "exclude"]
    table = _table(
        ("claim", "use", "verdict", "observed", "published", "unit", "contradiction"),
        (
            (
                v.id,
                v.use,
                f"**{v.verdict}**" if v.verdict == "fail" else v.verdict,
                _text(v.observed),
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
    return "\n".join([*lines, "", table, "", "Not judged, and why:", "", *rest])


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


def main(argv: Sequence[str]) -> int:
    """Fill every part of the file named by the first argument from the shipped tables and the store."""
    from retrompi.papers.paper import all_papers
    from retrompi.papers.reproduction import run_paper
    from retrompi.store import open_store

    path = Path(argv[0])
    fill(path, "readings", reading_table())
    fill(path, "checks", check_table())
    store, text = open_store(), path.read_text(encoding="utf-8")
    for key in (k for k in all_papers() if f"<!-- verdicts {k} -->" in text):
        fill(path, f"verdicts {key}", verdict_table(run_paper(key, store, keep=False).verdicts))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
