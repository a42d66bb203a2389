"""Finds texts for people in the studio's source that are not marked for translation: constants and f-strings that read like words.

Errors are not looked at (a line with a code that the manual explains stays English, as on the command line), nor what is no text:
css classes, identifiers, patterns, the values of HTML attributes without words.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

MARKS = {"_", "lazy", "ngettext", "pgettext"}
NO_TEXT = {"className", "id", "type", "href", "code", "style", "rel", "role", "hoverinfo", "target", "inputMode", "autoComplete",
           "mimetype", "css", "src", "pattern", "name", "slot", "value", "mode", "samesite"}
"""Keyword arguments that take no text for people."""
NO_TEXT_OF = {"compile", "fullmatch", "match", "sub", "search", "findall", "split", "replace", "removeprefix", "startswith", "getattr",
              "error", "info", "warning", "exception", "LookupError", "Input", "Output", "State", "ClientsideFunction", "Choice",
              "choice", "get", "Response", "joinpath", "add_url_rule", "_said"}
"""Functions whose texts are for machines, for the log, or (`_said`) for somebody who is refused and has no page."""
SIZE = re.compile(r"\d+ ([KMG]i?)?B")


def words(text: str) -> bool:
    """Whether it reads like words: two with a blank between them, or one with a capital."""
    if SIZE.fullmatch(text) or re.match(r"[/#.<%]|--|https?:|retrompi |[a-z-]+ [a-z-]+\{|\(|[\w-]+: ?[\w#-]+;", text):
        return False
    plain = re.sub(r"<[^>]*>", "", text)
    return bool(re.search(r"[A-Za-z]{2,} +[a-z]{2,}", plain) or re.fullmatch(r"[A-Z][a-z]{2,}( [a-z]+)*[:.…]?", plain.strip()))


class _Finder(ast.NodeVisitor):
    def __init__(self) -> None:
        self.found: list[tuple[int, str]] = []

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in MARKS:
            return
        self.visit(node.func)
        for given in node.args:
            if not (name in NO_TEXT_OF and isinstance(given, ast.Constant | ast.JoinedStr)):
                self.visit(given)
        for named in node.keywords:
            if named.arg not in NO_TEXT:
                self.visit(named.value)

    def visit_Dict(self, node: ast.Dict) -> None:
        for value in node.values:
            self.visit(value)

    def visit_Compare(self, node: ast.Compare) -> None:
        """What is compared is no text for people."""

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        """An error."""

    def visit_Assert(self, node: ast.Assert) -> None:
        """A defect of ours."""

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # a docstring
            self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        if not any(getattr(t, "id", "") in ("__all__", "_INDEX", "_FORM") for t in node.targets):
            self.visit(node.value)

    def visit_arguments(self, node: ast.arguments) -> None:
        for one in [*node.defaults, *(d for d in node.kw_defaults if d)]:
            self.visit(one)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.visit(node.args)
        for one in [*node.decorator_list, *node.body]:
            self.visit(one)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and words(node.value):
            self.found.append((node.lineno, node.value))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        text = "".join(v.value if isinstance(v, ast.Constant) else "…" for v in node.values)
        if words(text.replace("…", "")) or re.search(r"[a-z]{3,} … | … [a-z]{3,}", text):
            self.found.append((node.lineno, text))
        for value in node.values:
            if isinstance(value, ast.FormattedValue):
                self.visit(value.value)


def unwrapped(file: Path) -> Iterator[tuple[int, str]]:
    """(line, text) of each unmarked text of a file."""
    finder = _Finder()
    finder.visit(ast.parse(file.read_text(encoding="utf-8")))
    yield from finder.found
