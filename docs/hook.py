"""MkDocs hook: reference pages written by `retrompi.manual` out of code and evidence, the labs' slides, and the notebooks, executed."""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import plotly.io
from mkdocs.structure.files import File, Files

from retrompi.labs import glossary
from retrompi.labs.lab import labs
from retrompi.manual import pages
from retrompi.render.document import export
from retrompi.studio.labs import slides

_WRITTEN = pages()
_NOTEBOOKS = Path(__file__).resolve().parents[1] / "examples" / "notebooks"
_PLOTLY = "application/vnd.plotly.v1+json"


def on_config(config: Any) -> Any:
    """Put the generated pages at the beginning of the section ``Reference``."""
    sections: dict[str, list[Any]] = {}
    for page in _WRITTEN:
        sections.setdefault(page.section, []).append(page.path if page.title == "Overview" else {page.title: page.path})
    # A section of one page is that page.
    tree = [{name: found} if len(found) > 1 else found[0] for name, found in sections.items()]
    for entry in config.nav:
        if "Reference" in entry:
            entry["Reference"] = [*tree, *entry["Reference"]]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add their text."""
    for page in _WRITTEN:
        files.append(File.generated(config, page.path, content=page.text))
    with tempfile.TemporaryDirectory() as folder:
        for lab in labs():
            if slides.count(lab):
                made = slides.deck(lab, f"{folder}/store.db")
                files.append(File.generated(config, f"slides/lab-{lab.key}.html", content=made))
    figures: dict[str, Any] = {}
    for notebook in sorted(_NOTEBOOKS.glob("*.ipynb")):
        files.append(File.generated(config, f"notebooks/{notebook.stem}.md", content=_shown(notebook, figures)))
    with tempfile.TemporaryDirectory() as folder:
        drawn, missing = export.images(figures, Path(folder), ["svg"])
        if missing and figures:
            raise RuntimeError(f"{missing} (the figures of the notebooks)")
        for path in drawn:
            files.append(File.generated(config, f"notebooks/{path.name}", content=path.read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """The terms of the labs on the page of the glossary."""
    if page.file.src_uri != "glossary.md":
        return markdown
    rows = sorted(glossary.terms(), key=lambda t: t.term.casefold())
    return markdown.replace("<!-- terms of the labs -->", "\n\n".join(f"**{t.term}**\n:   {t.text} *{t.source}.*" for t in rows))


@contextmanager
def _aside() -> Any:
    """In the body, Jupyter and retrompi keep nothing that is the user's own."""
    names = ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "RETROMPI_STORE")
    before = {name: os.environ.get(name) for name in names}
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update({name: f"{folder}/{name}" for name in names} | {"RETROMPI_STORE": f"{folder}/store.db"})
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)


def _shown(notebook: Path, figures: dict[str, Any]) -> str:
    """The notebook as Markdown, executed; its figures are added to ``figures``."""
    book = nbformat.read(notebook, as_version=4)
    with _aside():
        about = {"kernel_name": "python3", "resources": {"metadata": {"path": str(_NOTEBOOKS)}}}
        nbclient.NotebookClient(book, timeout=600, extra_arguments=["--log-level=ERROR"], **about).execute()
    parts = []
    for cell in book.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        for output in cell.outputs:
            told = output.get("data", {})
            if _PLOTLY in told:
                name = f"{notebook.stem}-{1 + sum(f.startswith(notebook.stem) for f in figures)}"
                figures[name] = plotly.io.from_json(plotly.io.json.to_json_plotly(told[_PLOTLY]), skip_invalid=True)
                parts.append(f"![{figures[name].layout.title.text or notebook.stem}]({name}.svg)")
            elif "text/html" in told:
                plain = re.sub(r"<style.*?</style>|\n\s*", "", told["text/html"], flags=re.S)
                plain = re.sub(r"<(table|tr|td|th|div)\b[^>]*>", r"<\1>", plain)  # the theme's tables, not those of pandas
                parts.append(f'<div class="output">{plain}</div>')
            elif text := told.get("text/plain") or output.get("text"):
                parts.append(f'```text title="output"\n{text.rstrip()}\n```')
    about = f"*This page is the notebook `examples/notebooks/{notebook.name}`; it was run when the site was built.*"
    return "\n\n".join([parts[0], about, *parts[1:]]) + "\n"
