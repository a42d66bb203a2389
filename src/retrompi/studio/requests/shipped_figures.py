"""The numbers of the first figures as the package ships them (``studio/requests/shipped_figures.json``), for visitors who come before they
are simulated here.

``make judged`` writes them. They are shown as a sketch until the page's own job has the numbers of this installation, which is seconds,
and not at all if a runtime or platform that they rest on has been changed since.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from retrompi.base import translate
from retrompi.base.errors import RetrompiError
from retrompi.spec import registry

if TYPE_CHECKING:
    from retrompi.studio.jobs.resources import Resources

__all__ = ["FILE", "answer", "document", "questions", "simulate_answers"]

FILE = Path(__file__).with_name("shipped_figures.json")


def questions(module: ModuleType, resources: Resources) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """(address, job) of what is answered in advance for a page: as it opens, and as links commonly ask for it (``EARLY`` of its module)."""
    from retrompi.studio.requests.state import Query

    if hasattr(module, "first"):
        for search in getattr(module, "EARLY", ("",)):
            job, _show, _shared = module.first(Query(search), resources)
            yield module.PAGE.path + search, job


def simulate_answers(resources: Resources) -> Iterator[tuple[str, dict[str, Any]]]:
    """(address, answer by language) of every question of `questions`, simulated now; only English if no text is in the answer."""
    from retrompi.studio.requests.page import modules

    for module in modules().values():
        for address, (_title, function, arguments) in questions(module, resources):
            found: dict[str, Any] = {}
            function(lambda *_: None, *arguments)  # from now on every language finds the same in the store
            for language in translate.languages():
                with translate.speaking(language):
                    told = function(lambda *_: None, *arguments)
                if told != found.get(translate.ENGLISH):
                    found[language] = told
            yield address, found


def document(code: str, answers: Mapping[str, Mapping[str, Any]]) -> str:
    """The text of the file: for each address its answers, the code that made them, and the hashes of what they rest on."""
    pages = {address: {"code": code, "rests_on": _rests_on(found), "answers": found} for address, found in answers.items()}
    return "{\n" + ",\n".join(f"{json.dumps(a)}: {json.dumps(page, ensure_ascii=False)}" for a, page in pages.items()) + "\n}\n"


def answer(address: str) -> Any:
    """The answer of one of `questions` in the language of the context, or None: there is none, or what it rests on is not as it was."""
    found = _read().get(address)
    if found is None:
        return None
    answers = found["answers"]
    try:
        return answers.get(translate.language(), answers[translate.ENGLISH]) if _rests_on(answers) == found["rests_on"] else None
    except RetrompiError:  # a runtime in the middle of an edit
        return None


@cache
def _read() -> dict[str, Any]:
    return dict(json.loads(FILE.read_text(encoding="utf-8"))) if FILE.is_file() else {}


def _rests_on(found: Any) -> dict[str, str]:
    """The runtimes and platforms of an answer's curves and messages, each with its hash."""
    simulated = list(_questions_in(found))
    models, platforms = {c["model"] for c in simulated}, {c["platform"] for c in simulated}
    return {**{m: registry.model(m).hash() for m in sorted(models)}, **{p: registry.platform(p).hash for p in sorted(platforms)}}


def _questions_in(found: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(found, dict):
        if "model" in found and "platform" in found:
            yield found
        else:
            for value in found.values():
                yield from _questions_in(value)
    elif isinstance(found, list):
        for value in found:
            yield from _questions_in(value)
