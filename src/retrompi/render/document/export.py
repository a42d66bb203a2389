"""CSV export always; PNG and SVG through a headless Chromium if one is installed.

plotly.js draws the exported picture just as it does the page's. One browser start makes all of them.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from retrompi.base.csv_safe import write_rows
from retrompi.base.errors import RetrompiError, UsageError, nearest
from retrompi.base.scratch import folder as temporary
from retrompi.sim.processes import end_with_parent

__all__ = ["FORMATS", "browser", "images", "screenshot", "write_csv"]

FORMATS = ("png", "svg")
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MISSING = "no PNG or SVG written: no Chromium or Chrome found; install one or set RETROMPI_BROWSER to its path"


def browser() -> str | None:
    """The path of a Chromium or Chrome: ``$RETROMPI_BROWSER``, else the first on PATH, else None."""
    given = os.environ.get("RETROMPI_BROWSER")
    if given:
        return given if os.access(given, os.X_OK) else None
    return next((found for name in _BROWSERS if (found := shutil.which(name))), None)


def write_csv(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Flat rows as CSV, columns in order of first appearance; an empty table is an empty file."""
    table = list(rows)
    names = list(dict.fromkeys(k for row in table for k in row))
    with path.open("w", newline="", encoding="utf-8") as handle:
        if names:
            write_rows(handle, names, table)
    return path


_SCRIPT = """
(async () => {
  const jobs = JSON.parse(document.getElementById("jobs").textContent), out = [];
  for (const job of jobs) {
    const gd = document.createElement("div");
    document.body.appendChild(gd);
    job.figure.layout.width = job.width; job.figure.layout.height = job.height;
    await Plotly.newPlot(gd, job.figure.data, job.figure.layout, {staticPlot: true});
    for (const format of job.formats)
      out.push([job.name + "." + format, await Plotly.toImage(gd, {format, width: job.width, height: job.height, scale: job.scale})]);
    Plotly.purge(gd); gd.remove();
  }
  document.body.innerHTML = "";
  document.querySelectorAll("script,style").forEach(e => e.remove());
  const pre = document.createElement("pre"); pre.id = "images"; pre.textContent = btoa(JSON.stringify(out));
  document.body.appendChild(pre);
})();
"""


def _page(figures: Mapping[str, go.Figure], formats: Sequence[str], width: int, height: int, scale: float) -> str:
    jobs = [
        {
            "name": name,
            "figure": json.loads(figure.to_json()),
            "formats": list(formats),
            "width": max(width, least[0]),
            "height": max(height, least[1]),
            "scale": scale,
        }
        for name, figure in figures.items()
        for least in [(figure.layout.meta or {}).get("least", (0, 0))]
    ]
    data = json.dumps(jobs).replace("</", "<\\/")
    return (
        '<!doctype html><html><head><meta charset="utf-8"></head><body>'
        f'<script type="application/json" id="jobs">{data}</script>'
        f"<script>{get_plotlyjs()}</script><script>{_SCRIPT}</script></body></html>"
    )


def _decode(uri: str) -> bytes:
    head, _, data = uri.partition(",")
    return base64.b64decode(data) if head.endswith(";base64") else unquote_to_bytes(data)


def _browse(program: str, page: Path, options: Sequence[str], timeout_s: float) -> subprocess.CompletedProcess[bytes]:
    """Load a page in a separate headless browser, without a profile and without background requests."""
    with temporary("page") as profile:
        command = [
            program,
            "--headless",
            "--disable-gpu",
            "--disable-background-networking",
            "--hide-scrollbars",
            f"--user-data-dir={profile}",
            "--virtual-time-budget=60000",
            *options,
            page.resolve().as_uri(),
        ]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.insert(1, "--no-sandbox")  # Chromium refuses to run sandboxed as root, as in a container
        try:
            return subprocess.run(
                command, capture_output=True, timeout=timeout_s, check=False, preexec_fn=partial(end_with_parent, os.getpid())
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise RetrompiError(f"no image written: {program} failed: {error}", code="no-image") from error


def screenshot(page: Path, target: Path, *, width: int = 1500, height: int = 1700, timeout_s: float = 120.0) -> bool:
    """Write a PNG of the top of a page as a browser shows it; returns False if there is no browser.

    ``python -m retrompi.render.document.export PAGE PNG`` makes the picture of the README.
    """
    program = browser()
    if program is None:
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    done = _browse(program, page, [f"--window-size={width},{height}", f"--screenshot={target.resolve()}"], timeout_s)
    if not target.is_file():
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise RetrompiError(f"no image written: {program} drew nothing ({said[-1] if said else 'no message'})", code="no-image")
    return True


def images(
    figures: Mapping[str, go.Figure],
    folder: Path,
    formats: Sequence[str] = FORMATS,
    *,
    width: int = 1000,
    height: int = 640,
    scale: float = 2.0,
    timeout_s: float = 120.0,
) -> tuple[list[Path], str]:
    """Write every figure as ``folder/name.format``; returns (paths, "") or ([], one line on what is missing).

    ``width`` and ``height`` in CSS pixels, or as many as a figure states as the ``least`` that it can be read at (``layout.meta``); a PNG
    has ``scale`` times as many. Raises UsageError for an unknown format and
    RetrompiError when an installed browser fails.
    """
    for wanted in formats:
        if wanted not in FORMATS:
            raise UsageError(f"no image format '{wanted}'{nearest(wanted, FORMATS)}", code="no-image")
    program = browser()
    if program is None:
        return [], MISSING
    with temporary("page") as scratch:
        page = Path(scratch) / "page.html"
        page.write_text(_page(figures, formats, width, height, scale), encoding="utf-8")
        done = _browse(program, page, ["--dump-dom"], timeout_s)
    found = re.search(rb'<pre id="images">([A-Za-z0-9+/=]*)</pre>', done.stdout)
    if found is None:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise RetrompiError(f"no image written: {program} drew nothing ({said[-1] if said else 'no message'})", code="no-image")
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, uri in json.loads(base64.b64decode(found[1])):
        path = folder / name
        path.write_bytes(_decode(uri))
        paths.append(path)
    return paths, ""


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m retrompi.render.document.export PAGE.html PICTURE.png")
    if not screenshot(Path(sys.argv[1]), Path(sys.argv[2])):
        sys.exit(MISSING)
