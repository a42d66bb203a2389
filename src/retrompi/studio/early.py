"""The numbers of the first figures as the package ships them (``studio/early.json``), for visitors who come before they are simulated here.

``make judged`` writes them. They are shown as a sketch until the page's own job has the numbers of this installation, which is seconds,
and not at all if a runtime or platform that they rest on has been changed since.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrompi.base.errors import RetrompiError
from retrompi.spec import registry

if TYPE_CHECKING:
    from retrompi.studio.room import Room

__all__ = ["FILE", "answer", "document", "made"]

FILE = Path(__file__).with_name("early.json")


def made(room: Room) -> Iterator[tuple[str, Any]]:
    """(path, answer) of the first figure of every page that has one, simulated now."""
    from retrompi.studio.page import modules
    from retrompi.studio.state import Query

    for path, module in modules().items():
        if hasattr(module, "first"):
            (_title, function, arguments), _show, _shared = module.first(Query(), room)
            yield path, function(lambda *_: None, *arguments)


def document(code: str, answers: Mapping[str, Any]) -> str:
    """The text of the file: for each path its answer, the code that made it, and the hashes of what it rests on."""
    pages = {path: {"code": code, "rests_on": _rests_on(found), "answer": found} for path, found in answers.items()}
    return "{\n" + ",\n".join(f"{json.dumps(path)}: {json.dumps(page, ensure_ascii=False)}" for path, page in pages.items()) + "\n}\n"


def answer(path: str) -> Any:
    """The answer of the page's first job, or None: there is none, or what it rests on is not as it was."""
    found = _read().get(path)
    if found is None:
        return None
    try:
        return found["answer"] if _rests_on(found["answer"]) == found["rests_on"] else None
    except RetrompiError:  # a runtime in the middle of an edit
        return None


@cache
def _read() -> dict[str, Any]:
    return dict(json.loads(FILE.read_text(encoding="utf-8"))) if FILE.is_file() else {}


def _rests_on(found: Any) -> dict[str, str]:
    """The runtimes and platforms of an answer's curves, each with its hash."""
    curves = list(_curves(found))
    models, platforms = {c["model"] for c in curves}, {c["platform"] for c in curves}
    return {**{m: registry.model(m).hash() for m in sorted(models)}, **{p: registry.platform(p).hash for p in sorted(platforms)}}


def _curves(found: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(found, dict):
        if "model" in found and "rows" in found:
            yield found
        else:
            for value in found.values():
                yield from _curves(value)
    elif isinstance(found, list):
        for value in found:
            yield from _curves(value)
