"""The generated parts of docs/uncertainty/tests.md that say how posteriors were checked and how rival variants compare.

    python -m retrompi.inference.tables docs/uncertainty/tests.md     # fills <!-- ranks --> and <!-- rivals -->, draws docs/img/ranks.svg

They are made from the stored tables (validate/posteriors/); nothing is simulated.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path

from scipy.stats import binom

from retrompi.inference import checks, evidence, ranks
from retrompi.inference.checks import RankCheck
from retrompi.inference.evidence import Rival
from retrompi.papers.markdown import fill, parts

__all__ = ["figure", "main", "ranks_table", "rivals_table"]

HEAD = ("model", "data", "truths", "parameters", "seen", "informed", "coverage: all", "seen", "informed", "discrepancy", "p",
        "emulator's error: stated", "actual")
COLUMNS, WIDE, HIGH, GAP, TOP = 5, 176, 66, 8, 26


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "|".join("---" if i < 2 else "---:" for i in range(len(head))) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _share(value: float, low: float = 0.85, high: float = 0.95) -> str:
    if value != value:  # nothing to judge
        return ""
    return f"{value:.3f}" if low <= value <= high else f"**{value:.3f}**"


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.2g}"


def ranks_table(rows: Mapping[tuple[str, str], RankCheck]) -> str:
    """A row for every model and kind of data; coverages outside 85 to 95 % are bold."""
    told = list(rows.values())
    right = sum(c.right for c in told)
    truths, incomplete = sum(c.truths for c in told), sum(c.incomplete for c in told)
    lines = [
        f"{right} of {len(told)} posteriors hold the truth in 85 to 95 % of their 90 % intervals, pooled over all parameters; "
        f"{sum(0.85 <= c.coverage_seen <= 0.95 for c in told)} also over those that the data see alone. {truths} truths"
        + (f", {incomplete} more did not complete." if incomplete else "."),
        "",
    ]
    body = [
        (f"`{c.model}`", c.data, str(c.truths), str(c.parameters), str(c.seen), str(c.informed), _share(c.coverage),
         _share(c.coverage_seen), _share(c.coverage_informed, 0.80, 1.0), _share(c.coverage_discrepancy, 0.80, 1.0),
         _p(c.p_seen), f"{c.error_stated:.1%}", f"{c.error_actual:.1%}")
        for c in told
    ]
    return "\n".join([*lines, _table(HEAD, body)])


def rivals_table(rows: Sequence[Rival]) -> str:
    """A row for every variant with rivals: log evidence, its difference from the base's, and the score of held-out numbers."""
    if not rows:
        return "No rivals have been compared."
    head = ("model", "evidence", "log evidence", "difference", "discrepancy", "held-out score", "numbers", "runs without one")
    error = evidence.against(rows)
    body = [
        (f"`{r.variant}`", "" if r.variant == r.base else evidence.word(r.difference, error[r.variant]),
         f"{r.log_evidence:.1f} ± {r.error:.2g}", "" if r.variant == r.base else f"{r.difference:+.1f}",
         f"{r.discrepancy:.0%}", "" if r.score != r.score else f"{r.score:.2f}",
         str(r.statements), f"{r.lost:.0%}")
        for r in rows
    ]
    return _table(head, body)


def figure(rows: Mapping[tuple[str, str], RankCheck]) -> str:
    """Rank histograms of the parameters that are seen, one for each row, as SVG; the band is where a bar of uniform ranks lies with 95 %
    probability."""
    told = list(rows.values())
    lines = -(-len(told) // COLUMNS)
    width, height = COLUMNS * (WIDE + GAP) + GAP, lines * (HIGH + TOP + GAP) + GAP
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for i, c in enumerate(told):
        x, y = GAP + i % COLUMNS * (WIDE + GAP), GAP + i // COLUMNS * (HIGH + TOP + GAP)
        counts = [int(n) for n in c.ranks_seen.split()]
        n = sum(counts)
        most = max(*counts, 1.5 * n / ranks.BINS, 1)
        low, high = (HIGH * float(binom.ppf(q, n, 1 / ranks.BINS)) / most for q in (0.025, 0.975))
        name = c.model if c.data == "standard curve" else c.data if c.data.startswith("statements") else f"{c.model}: {c.data}"
        base = y + TOP + HIGH
        out.append(f'<text x="{x}" y="{y + 12}" fill="#222">{escape(name if len(name) < 30 else name[:28] + "…")}</text>')
        out.append(f'<text x="{x}" y="{y + 23}" fill="#666" font-size="9">coverage {c.coverage_seen:.3f}, p {escape(_p(c.p_seen))}</text>')
        out.append(f'<rect x="{x}" y="{base - high:.1f}" width="{WIDE}" height="{high - low:.1f}" fill="#dfe7ef"/>')
        for j, count in enumerate(counts):
            bar = HIGH * count / most
            out.append(f'<rect x="{x + j * WIDE / ranks.BINS + 1:.1f}" y="{base - bar:.1f}" width="{WIDE / ranks.BINS - 2:.1f}" '
                       f'height="{bar:.1f}" fill="#2f6c9f" fill-opacity="0.75"/>')
        out.append(f'<line x1="{x}" x2="{x + WIDE}" y1="{base}" y2="{base}" stroke="#444"/>')
    return "\n".join([*out, "</svg>", ""])


def main(argv: Sequence[str]) -> int:
    """Fills the parts of the file named by the first argument, and draws the figure of docs/img."""
    path = Path(argv[0])
    rows = checks.read_checks()
    made: Mapping[str, Callable[[], str]] = {"ranks": lambda: ranks_table(rows), "rivals": lambda: rivals_table(evidence.read_rivals())}
    for name in parts(path):
        if name in made:
            fill(path, name, made[name]())
    (path.parents[1] / "img" / "ranks.svg").write_text(figure(rows), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
