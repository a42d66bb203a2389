"""The specification as a book: a chapter for each file of ``retrompi.reference``, whose prose and code are the chapter's, with a run of its
own, drawn, that both the engine and the specification have simulated when the site was built."""

from __future__ import annotations

import ast
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape as html
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from typing import Any
from urllib.parse import urlencode

from retrompi.base.units import format_bytes, format_quantity
from retrompi.cli.studio import PORT
from retrompi.labs.lab import labs
from retrompi.manual.markdown import ManualPage, escape, link, slug, table
from retrompi.reference.compare import compare_question
from retrompi.sim import simulate
from retrompi.spec.declare.fields import fields_of
from retrompi.spec.question import Beside, Message, Question, Replay, Workload
from retrompi.studio.anatomy.scene import STAGES
from retrompi.traces.files import parse

__all__ = ["Chapter", "book_pages", "chapters", "chapters_of"]

ADDRESS = f"http://127.0.0.1:{PORT}"
"""Where `retrompi studio` answers."""
WIDTH, LANE, LEFT = 720, 26, 150
"""Pixels of a drawing: its width, the height of a lane, and the width of a lane's name."""

EXCHANGE = """0 init
0 send 1 0 {size} 6
0 recv 1 0 {size} 6
0 finalize
1 init
1 recv 0 0 {size} 6
1 send 0 0 {size} 6
1 finalize
"""


@dataclass(frozen=True)
class Chapter:
    """A file of `retrompi.reference` and a run: one message of ``size`` bytes, or a ``trace``. ``see``: what the run shows."""

    file: str
    title: str
    see: str
    model: str
    platform: str
    mode: str = "shared"
    fidelity: str = "mechanism"
    network: str = "native"
    size: int = 0
    trace: str = ""
    beside: Mapping[str, Any] = field(default_factory=dict)
    labs: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The run's trace."""
        return self.trace.lstrip() or EXCHANGE.format(size=self.size)

    def question(self, workload: Workload) -> Question:
        """What is simulated."""
        beside = Beside(**self.beside)
        return Question(self.model, self.platform, workload, self.mode, fidelity=self.fidelity, network=self.network, beside=beside)

    @property
    def options(self) -> str:
        """The run's options on a command line."""
        options = {"--fidelity": (self.fidelity, "mechanism"), "--network": (self.network, "native")}
        own = [f"{option} {value}" for option, (value, usual) in options.items() if value != usual]
        declared = fields_of(Beside)
        own += [f"{declared[name].option} {shlex.quote(text)}" for name, texts in self.beside.items() for text in texts]
        return " ".join([f"-m {self.model}", f"-p '{self.platform}'", f"--mode {self.mode}", *own])


@cache
def chapters() -> tuple[Chapter, ...]:
    """Those of ``book.toml``, in the order of reading."""
    with Path(__file__).with_name("book.toml").open("rb") as file:
        return tuple(Chapter(name, **{**row, "labs": tuple(row.get("labs", ()))}) for name, row in tomllib.load(file).items())


# -- a run, drawn ----------------------------------------------------------------------------------------------------------------------


Bar = tuple[str, int, int, str]
"""(lane, begin, end, stage or call)."""


def _lanes_svg(bars: Sequence[Bar], arrows: Sequence[tuple[str, int, str, int]], what: str) -> str:
    """Lanes of bars along time as an inline SVG, and arrows (lane, time, lane, time) between them; times in picoseconds."""
    lanes = list(dict.fromkeys(bar[0] for bar in sorted(bars, key=lambda bar: bar[1])))
    first, last = min(bar[1] for bar in bars), max(bar[2] for bar in bars)
    scale = (WIDTH - LEFT - 10) / max(last - first, 1)
    kinds = list(dict.fromkeys(bar[3] for bar in bars))
    looks = {kind: STAGES.get(kind, (CALLS[i % len(CALLS)], False)) for i, kind in enumerate(kinds)}
    colours = {kind: f"{colour}80" if hatched else colour for kind, (colour, hatched) in looks.items()}

    def x(at: int) -> str:
        return f"{LEFT + (at - first) * scale:.1f}"

    def y(lane: str) -> int:
        return 4 + LANE * lanes.index(lane)

    high = LANE * len(lanes) + 26
    style = f"width:100%;max-width:{WIDTH}px;font:12px sans-serif"
    out = [f'<svg viewBox="0 0 {WIDTH} {high}" role="img" aria-label="{html(what)}" style="{style}">']
    for lane in lanes:
        out.append(f'<text x="0" y="{y(lane) + 15}" fill="currentColor">{html(lane[:24])}</text>')
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - 10}" y1="{y(lane) + 22}" y2="{y(lane) + 22}" stroke="currentColor" opacity=".2"/>')
    for lane, begin, end, kind in bars:
        wide = max((end - begin) * scale, 0.6)
        out.append(f'<rect x="{x(begin)}" y="{y(lane) + 2}" width="{wide:.1f}" height="18" fill="{colours[kind]}"><title>{html(kind)}: '
                   f"{_time(begin - first)} to {_time(end - first)}</title></rect>")
    for source, sent, target, received in arrows:
        out.append(f'<line x1="{x(sent)}" y1="{y(source) + 11}" x2="{x(received)}" y2="{y(target) + 11}" stroke="currentColor"/>'
                   f'<circle cx="{x(received)}" cy="{y(target) + 11}" r="3" fill="currentColor"/>')
    whole = _time(last - first)
    out.append(f'<text x="{LEFT}" y="{high - 6}" fill="currentColor">0</text>'
               f'<text x="{WIDTH - 10}" y="{high - 6}" text-anchor="end" fill="currentColor">{whole}</text></svg>')
    marks = [f'<span style="color:{colours[kind]}">&#9632;</span> {html(kind)}' for kind in kinds]
    legend = " ".join(f'<span style="white-space:nowrap">{mark}</span>' for mark in marks)
    return f"<div>{''.join(out)}<p>{legend}</p></div>"


CALLS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")


def _time(picoseconds: int) -> str:
    return format_quantity(float(f"{picoseconds / 1e12:.4g}"), "s")


def _message(chapter: Chapter) -> str:
    """A message's first direction: what each process does, then the kernels, cards and the wire."""
    told = simulate.message_path(chapter.question(Message(chapter.size)))
    there = told.directions[0]
    bars: list[Bar] = []
    for process in told.processes:
        for s in process.stretches:
            if s.stage != "wait" and s.begin < there.end and s.end > there.begin:
                bars.append((process.name or process.host, max(s.begin, there.begin), min(s.end, there.end), s.stage))
    bars += [(w.where, w.start, w.end, w.stage) for w in told.work if there.begin <= w.start and w.end <= there.end]
    return _lanes_svg(bars, [], f"one message of {format_bytes(chapter.size)}, by process and stage")


def _calls(chapter: Chapter, engine: Mapping[str, Any]) -> str:
    """The calls of each rank, and the messages between them."""
    words = [line.split()[1] for line in chapter.text.splitlines()]
    bars: list[Bar] = [(f"rank {rank}", begin, end, words[line - 1]) for rank, line, begin, end in sorted(engine["calls"])
                       if end > begin]
    arrows = [(f"rank {a}", sent, f"rank {b}", received) for a, b, *_beside, sent, received in engine["messages_of"]
              if sent >= 0 and received >= 0]
    return _lanes_svg(bars, arrows, "the calls of each rank, and the messages between them")


def _run(chapter: Chapter) -> list[str]:
    engine, _rule, what = compare_question(chapter.question(Replay(parse(chapter.text))))
    if what:
        raise RuntimeError(f"the book's run of {chapter.file}: {what}")
    drawn = _calls(chapter, engine) if chapter.trace else _message(chapter)
    out = ["## A run", escape(chapter.see), drawn, f'```text title="run.ti"\n{chapter.text}```']
    counted = ", ".join(f"{engine[name]} {name}" for name in ("messages", "packets", "frames"))
    out.append(f"Engine and specification: {engine['outcome']} after {engine['time_ps']:_} ps, {counted}; equal in every call and counter.")
    commands = ("python -m retrompi.reference run.ti", "retrompi replay run.ti --timeline run.html")
    out.append("\n".join(["```sh", *(f"{command} {chapter.options}" for command in commands), "```"]))
    asked = {"model": chapter.model, "platform": chapter.platform, "mode": chapter.mode}
    if not chapter.trace:
        one = f"{ADDRESS}/anatomy?{urlencode({**asked, 'size': f'{chapter.size} B'})}"
        other = f"{ADDRESS}/whatif?{urlencode(asked)}"
        out.append(f"Where `retrompi studio` runs: [this message, step by step]({one}); [the same runtime with other numbers]({other}).")
    else:
        out.append(f"Where `retrompi studio` runs: [Replay]({ADDRESS}/replay) takes the trace and the options.")
    return out


# -- prose and code --------------------------------------------------------------------------------------------------------------------


Definition = ast.ClassDef | ast.FunctionDef


def _prose(node: Definition) -> range:
    """The lines of a definition's docstring, which stands above its code as text."""
    return range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1) if ast.get_docstring(node) else range(0)


def _code(lines: Sequence[str], begin: int, end: int, node: Definition) -> str:
    """Lines of a file as a block of code, without the docstring of ``node``."""
    return _fence(dedent("\n".join(line for n, line in enumerate(lines[begin - 1 : end], begin) if n not in _prose(node))).strip("\n"))


def _fence(code: str) -> str:
    return f"```python\n{code}\n```"


def _parts(source: str) -> Iterator[str]:
    """Prose and code of a file, definition by definition; its imports and list of names are left out."""
    lines, rest, read = source.splitlines(), [], 0  # type: tuple[list[str], list[str], int]
    for node in ast.parse(source).body:
        begin, end = _begin(node), node.end_lineno or 0
        rest += [line for line in lines[read : begin - 1] if line.strip()]  # comments
        read = end
        if isinstance(node, Definition):
            yield from [_fence("\n".join(rest))] if rest else []
            rest = []
            yield f"### `{node.name}`"
            yield from _definition(lines, node)
        elif not isinstance(node, (ast.Import, ast.ImportFrom)) and not _is_export(node) and begin > 1:
            rest += lines[begin - 1 : end]
    yield from [_fence("\n".join(rest))] if rest else []


def _begin(node: ast.stmt) -> int:
    """Its first line, decorators included."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(d.lineno for d in decorators)])


def _is_export(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__"


def _definition(lines: Sequence[str], node: Definition) -> Iterator[str]:
    if told := ast.get_docstring(node):
        yield told
    methods = [n for n in node.body if isinstance(n, ast.FunctionDef)] if isinstance(node, ast.ClassDef) else []
    if not any(map(ast.get_docstring, methods)):
        yield _code(lines, _begin(node), node.end_lineno or 0, node)
        return
    read = _begin(methods[0]) - 1
    yield _code(lines, _begin(node), read, node)
    for method in methods:
        if said := ast.get_docstring(method):
            yield f"**`{node.name}.{method.name}`**: {said}"
        yield _code(lines, read + 1, method.end_lineno or 0, method)
        read = method.end_lineno or 0


def _chapter(chapter: Chapter, number: int) -> ManualPage:
    module = import_module(f"retrompi.reference.{chapter.file}")
    source = Path(str(module.__file__)).read_text(encoding="utf-8")
    names = {lab.key: lab for lab in labs()}
    out = [f"# {number}. {chapter.title}", ast.get_docstring(ast.parse(source)) or "", *_run(chapter)]
    if chapter.labs:
        found = ", ".join(link(names[key].title, f"../labs/{slug(names[key].name)}.md") for key in chapter.labs)
        out.append(f"Labs about it: {found}.")
    out += ["## The rules", f"The file `src/retrompi/reference/{chapter.file}.py`, whole but for its imports.", *_parts(source)]
    path, title = f"reference/specification/{chapter.file}.md", f"{number}. {chapter.title}"
    return ManualPage(path, "The specification", title, "\n\n".join(out) + "\n")


def chapters_of(lab: str) -> list[Chapter]:
    """The chapters about what a lab is about."""
    return [chapter for chapter in chapters() if lab in chapter.labs]


def book_pages() -> list[ManualPage]:
    """The table of contents and a page for every chapter."""
    rows = [[str(n), link(c.title, f"{c.file}.md"), f"`{c.file}.py`", escape(c.see)] for n, c in enumerate(chapters(), 1)]
    out = ["# The specification, rule by rule",
           "How a message is simulated, exactly: the text of these chapters is the executable specification itself "
           "([what it is, and what it must equal](../../specification.md)). Each begins with its rules in prose and a run that engine and "
           "specification have simulated when this site was built; then comes the code, in the order in which it can be read.",
           table(["", "chapter", "file", "its run"], rows)]
    index = ManualPage("reference/specification/index.md", "The specification", "Overview", "\n\n".join(out) + "\n")
    return [index, *(_chapter(chapter, n) for n, chapter in enumerate(chapters(), 1))]
