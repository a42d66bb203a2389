"""axe-core in a page: what breaks WCAG 2.2 at level AA, as one line a fault. It comes with axe-playwright-python; nothing is fetched."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa"]


def source() -> str:
    """axe-core's script."""
    return (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


def violations(page: Any) -> list[str]:
    """The faults of a page as ``rule: element: what is wrong``. Its context has to be made with ``bypass_csp``."""
    if not page.evaluate("() => Boolean(window.axe)"):
        page.add_script_tag(content=source())
    found = page.evaluate("(levels) => axe.run(document, { runOnly: levels, resultTypes: ['violations'] })", LEVELS)
    return [
        f"{v['id']}: {' '.join(str(t) for t in node['target'])}: {' '.join(str(node.get('failureSummary', '')).split())[:220]}"
        for v in found["violations"] for node in v["nodes"]
    ]  # fmt: skip
