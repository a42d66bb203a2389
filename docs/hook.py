"""MkDocs hook: adds the reference pages that `retrompi.manual` writes out of code and evidence, and their navigation."""

from __future__ import annotations

from typing import Any

from mkdocs.structure.files import File, Files

from retrompi.manual import pages

_WRITTEN = pages()
_BY_HAND = {"Trace format": "trace-format.md", "Error codes": "errors.md"}


def on_config(config: Any) -> Any:
    """Put the generated pages into the empty section ``Reference``."""
    sections: dict[str, list[Any]] = {}
    for page in _WRITTEN:
        sections.setdefault(page.section, []).append(page.path if page.title == "Overview" else {page.title: page.path})
    # A section of one page is that page.
    tree = [{name: found} if len(found) > 1 else found[0] for name, found in sections.items()]
    for entry in config.nav:
        if "Reference" in entry:
            entry["Reference"] = [*tree, *({title: path} for title, path in _BY_HAND.items())]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add their text."""
    for page in _WRITTEN:
        files.append(File.generated(config, page.path, content=page.text))
    return files
