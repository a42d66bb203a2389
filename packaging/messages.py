"""Brings the catalogues of src/retrompi/locale into step with the code (``make messages``): new texts untranslated, gone ones removed.

``python packaging/messages.py --check`` only says what is out of step (exit code 1). ``python packaging/messages.py it`` begins Italian.
``--labs`` lists the labs' translated texts whose English has changed since; ``--labs --translated`` records that they follow it again.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polib
from babel.messages.extract import extract_from_file
from jinja2.ext import babel_extract

from retrompi.base import toml as toml_text
from retrompi.base import translate
from retrompi.labs import translated

ROOT = Path(__file__).resolve().parent.parent
PLACES = ("src/retrompi/studio", "src/retrompi/labs", "src/retrompi/classroom", "src/retrompi/render",
          "src/retrompi/spec/declare/curve.py", "src/retrompi/spec/declare/outcome.py", "src/retrompi/spec/declare/result.py",
          "src/retrompi/sim/timeline/kinds.py", "src/retrompi/sim/stages.py", "src/retrompi/studies/define/metrics.py", "cli/lab.py",
          "labs")
"""Where texts are that a student or a teacher reads."""
KEYWORDS: dict[str, Any] = {"_": None, "lazy": None, "ngettext": (1, 2), "pgettext": ((1, "c"), 2)}
METHODS: dict[str, tuple[Any, dict[str, Any]]] = {
    ".html": (babel_extract, {}), ".js": ("javascript", {"jsx": False, "parse_template_string": True}),
}
PLURALS = {"de": "nplurals=2; plural=(n != 1);", "fr": "nplurals=2; plural=(n > 1);"}
Key = tuple[str, str, str]
"""(context, text, plural): "" where there is none."""


def files() -> Iterator[Path]:
    """The files that texts are taken from."""
    for place in PLACES:
        path = ROOT / place
        within = [*path.rglob("*.py"), *path.rglob("*.js"), *path.rglob("templates/*.html")] if path.is_dir() else [path]
        yield from sorted(file for file in within if file.is_file())


def _in_python(file: Path) -> Iterator[Key]:
    """By the syntax tree: Babel reads tokens, and until Python 3.12 an f-string with all its calls is one."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        name = getattr(node.func, "id", getattr(node.func, "attr", "")) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and name in KEYWORDS:
            given = [a.value if isinstance(a, ast.Constant) and isinstance(a.value, str) else "" for a in node.args[:2]]
            one, second, *_rest = [*given, "", ""]
            if one:
                yield (one, second, "") if name == "pgettext" else ("", one, second if name == "ngettext" else "")


def _in_file(file: Path) -> Iterator[Key]:
    if file.suffix == ".py":
        yield from _in_python(file)
        return
    method, options = METHODS[file.suffix]
    for _line, message, _comments, context in extract_from_file(method, str(file), keywords=KEYWORDS, options=options):
        one, many = (message[0], message[1]) if isinstance(message, tuple) else (message, "")
        yield context or "", one, many or ""


def extracted() -> dict[Key, list[str]]:
    """Every marked text, with the files that show it."""
    found: dict[Key, list[str]] = {}
    for file in files():
        for one in _in_file(file):
            if one[1]:
                found.setdefault(one, []).append(str(file.relative_to(ROOT)))
    return dict(sorted(found.items(), key=lambda pair: (sorted(set(pair[1]))[0], pair[0])))


def key(entry: polib.POEntry) -> Key:
    """An entry's key."""
    return (entry.msgctxt or "", entry.msgid, entry.msgid_plural or "")


def read(language: str) -> polib.POFile:
    """A language's catalogue, or an empty one."""
    file = translate.catalogue(language)
    if file.is_file():
        return polib.pofile(str(file), wrapwidth=0)
    made = polib.POFile(wrapwidth=0)
    made.metadata = {
        "Project-Id-Version": "retrompi", "Language": language, "MIME-Version": "1.0", "Content-Type": "text/plain; charset=utf-8",
        "Content-Transfer-Encoding": "8bit", "Plural-Forms": PLURALS.get(language, PLURALS["de"]),
    }
    return made


def updated(language: str) -> polib.POFile:
    """The catalogue with every text of the code, and no other, in the order of the code."""
    before = read(language)
    known = {key(e): e for e in before}
    after = polib.POFile(wrapwidth=0)
    after.metadata = before.metadata
    for (context, one, many), places in extracted().items():
        entry = known.get((context, one, many)) or polib.POEntry(msgid=one, msgid_plural=many, msgctxt=context or None)
        if many and not entry.msgstr_plural:
            entry.msgstr_plural = {0: "", 1: ""}
        entry.occurrences = [(place, "") for place in sorted(set(places))]
        after.append(entry)
    return after


def stale(folder: Path, language: str) -> list[str]:
    """The names of a lab's texts that are not translated, or whose English has changed since."""
    _text, data = toml_text.read(folder / f"lab.{language}.toml", "lab's translation")
    now, then, there = translated.fingerprints(folder), data.get("source", {}), translated.translated_texts(folder, language)
    return [k for k in now if now[k] != then.get(k) or k not in there] + [k for k in there if k not in now]


def labs(record: bool) -> int:
    """Lists what is stale in the labs; with ``record``, states that what is there follows the English as it is now."""
    bad = 0
    for folder in sorted(f.parent for f in (ROOT / "labs").glob("*/lab.toml")):
        for language in translated.languages_of(folder):
            file = folder / f"lab.{language}.toml"
            if record:
                plain = file.read_text(encoding="utf-8").partition("\n[source]")[0].rstrip()
                rows = [f"{toml_text.quote(k)} = {toml_text.quote(v)}\n" for k, v in translated.fingerprints(folder).items()]
                file.write_text(f"{plain}\n\n[source]\n{''.join(rows)}", encoding="utf-8")
            for name in stale(folder, language):
                print(f"{file}: not translated, or its English has changed: {name}")
                bad = 1
    return bad


def main(words: list[str]) -> int:
    """Updates or checks."""
    if "--labs" in words:
        return labs("--translated" in words)
    only_check = "--check" in words
    asked = [w for w in words if not w.startswith("-")] or [which for which in translate.languages() if which != translate.ENGLISH]
    bad = 0
    for language in asked:
        after, file = updated(language), translate.catalogue(language)
        open_ones = [e for e in after if not e.translated()]
        for entry in open_ones:
            print(f"{language}: not translated: {entry.msgid!r}")
        if only_check:
            stale = {key(e) for e in read(language)} ^ {key(e) for e in after}
            for one in sorted(stale):
                print(f"{language}: not in step: {one!r}")
            bad |= bool(stale or open_ones)
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            after.save(str(file))
            print(f"{file}: {len(after)} texts, {len(open_ones)} to translate")
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
