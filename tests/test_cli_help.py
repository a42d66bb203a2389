"""Every command's help: a summary of one line, and examples that parse."""

from __future__ import annotations

import inspect
import re
import shlex

import click
from cases import for_each

from retrompi.cli.main import cli
from retrompi.manual.commands import commands

EVERY = commands()
MOST_PARAMETERS = 6


def examples(command: click.Command) -> list[str]:
    """The lines of the block ``Examples:``."""
    found = re.search(r"\x08\n *Examples:\n(.*?)(?:\n\n|\Z)", inspect.cleandoc(command.help or ""), re.DOTALL)
    return [line.strip() for line in found[1].splitlines()] if found else []


def parse(line: str) -> click.Command:
    """The command that ``line`` calls; click.UsageError where its options or arguments are wrong."""
    name, *words = shlex.split(line.partition(">>")[0].partition(" > ")[0])
    assert name == "retrompi"
    context, command = cli.make_context(name, list(words)), cli
    while isinstance(command, click.Group):
        word, found, words = command.resolve_command(context, [*context._protected_args, *context.args])
        assert found is not None, line
        context, command = found.make_context(word, words, parent=context), found
    return command


@for_each("words", list(EVERY))
def test_a_command_has_a_summary_and_examples_that_parse(words: str) -> None:
    command = EVERY[words]
    summary = inspect.cleandoc(command.help or "").split("\n\n")[0]
    assert "\n" not in summary
    assert len(summary) <= 100, summary
    lines = examples(command)
    assert lines
    called = [parse(line) for line in lines]
    if not isinstance(command, click.Group):
        assert command in called


@for_each("words", [w for w, c in EVERY.items() if not isinstance(c, click.Group)])
def test_a_command_takes_few_parameters(words: str) -> None:
    taken = inspect.signature(inspect.unwrap(EVERY[words].callback)).parameters  # type: ignore[arg-type]
    assert len(taken) <= MOST_PARAMETERS, list(taken)


def test_every_option_says_what_it_does() -> None:
    silent = [f"{w} {p.opts[-1]}" for w, c in EVERY.items() for p in c.params if isinstance(p, click.Option) and not (p.help or p.hidden)]
    assert silent == []
