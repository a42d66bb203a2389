"""Finds texts for people in scripts that are not marked for translation, as `unwrapped` does in Python.

Babel's reader of JavaScript takes a template within a template for the end of the outer one; so this reads them itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from unwrapped import words

MARKS = {"_", "lazy", "ngettext"}
NO_TEXT_OF = {"querySelector", "querySelectorAll", "closest", "matches", "getElementById", "error", "addEventListener", "Event",
              "getContext"}
"""Functions whose texts are for machines, or for the console."""
NO_TEXT = {"use strict", "a message", "nothing to do", "a send", "a lock", "Escape", "Home", "End", "Enter", "Tab",
           "scenes single", "· retrompi studio"}
"""Texts that nobody reads: the engine's names of what a process waits for, keys of the keyboard, classes; and the studio's name."""
UNITS = {"KiB", "MiB", "MB", "way", "place", "token", "px"}
"""Words of templates that are no sentence's: units, the name of the page, classes of CSS."""


@dataclass(frozen=True)
class Text:
    """A text of a script; of a template, one between its expressions. ``of``: the function that it is an argument of, if any."""

    line: int
    text: str
    of: str
    template: bool


_SKIPPED = re.compile(r"//[^\n]*|/\*.*?\*/|\s+", re.DOTALL)
_STRING = re.compile(r"""(["'])((?:\\.|(?!\1).)*)\1""", re.DOTALL)
_REGEX = re.compile(r"/(?:\\.|\[(?:\\.|[^\]\\])*\]|[^/\\\n])+/[a-z]*")
_WORD = re.compile(r"[\w$.]+")


class _Reader:
    def __init__(self, script: str) -> None:
        self.script, self.at = script, 0
        self.found: list[Text] = []

    def line(self) -> int:
        return self.script.count("\n", 0, self.at) + 1

    def code(self, end: str = "") -> None:
        """Reads up to ``end``, a closing bracket that nothing within opened, or to the end of the script."""
        calls, before = [], ""  # the functions of the brackets that are open; the last token
        while self.at < len(self.script):
            c = self.script[self.at]
            if found := _SKIPPED.match(self.script, self.at):
                self.at = found.end()
                continue
            of = calls[-1] if calls else ""
            if found := _STRING.match(self.script, self.at):
                self.found.append(Text(self.line(), found[2], of, False))
            elif c == "/" and (not before or before[-1] in "(,=:[!&|?{};+"):
                found = _REGEX.match(self.script, self.at)
                assert found, f"line {self.line()}: neither a comment nor a pattern"
            else:
                found = _WORD.match(self.script, self.at)
            if c == "`":
                self.template(of)
                before = c
                continue
            if c in "([{":
                calls.append(before.rpartition(".")[2] if c == "(" else of if c == "[" else "")
            elif c in ")]}":
                if not calls and c == end:
                    return
                calls.pop()
            before = found[0] if found else c
            self.at += len(before)

    def template(self, of: str) -> None:
        self.at += 1
        text = ""
        while (c := self.script[self.at]) != "`":
            if c == "\\":
                text += self.script[self.at : self.at + 2]
                self.at += 2
            elif self.script.startswith("${", self.at):
                self.found.append(Text(self.line(), text, of, True))
                text = ""
                self.at += 2
                self.code("}")
                self.at += 1
            else:
                text += c
                self.at += 1
        self.found.append(Text(self.line(), text, of, True))
        self.at += 1
_CODE = re.compile(r"^[.#\[)]|[\[#>:][\w-]|\(#?$|sans-serif")
"""Selectors, and the functions of CSS and SVG."""


def texts(script: str) -> list[Text]:
    """All texts of a script."""
    reader = _Reader(script)
    reader.code()
    return reader.found


def unmarked(script: str) -> Iterator[tuple[int, str]]:
    """(line, text) of those that read like words and go through no marker."""
    for one in texts(script):
        plain = re.sub(r"<[^>]*>", " ", one.text).strip()
        if one.of in MARKS | NO_TEXT_OF or plain in NO_TEXT or _CODE.search(plain):
            continue
        if words(plain) or (one.template and set(re.findall(r"(?<![\w-])[A-Za-z]{2,}(?![\w-])", plain)) - UNITS):
            yield one.line, plain
