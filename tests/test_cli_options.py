"""One meaning an option: over all commands, the same option takes the same value for the same purpose."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

import click
from cases import for_each

from retrompi.manual.commands import commands, options_page

DIFFER = {
    "--size": "explain takes one of --sizes",
    "--sizes": "explain takes one of --sizes",
    "-o": "a file or a folder, by what the command writes",
    "--output": "a file or a folder, by what the command writes",
    "--out": "a file or a folder, by what the command writes",
}
"""Option -> why what it takes, or how it is called, is not the same word in every command."""


def options() -> Iterator[tuple[str, click.Option]]:
    """Every option that help shows, with its command."""
    for words, command in commands().items():
        for parameter in command.params:
            if isinstance(parameter, click.Option) and not parameter.hidden:
                yield words, parameter


def meaning(option: click.Option) -> tuple[str, str]:
    """What an option takes, and what it is: its help up to the first punctuation mark."""
    takes = "" if option.is_flag else option.metavar or option.type.name
    return takes, re.split(r"[:(;,.]", option.help or "")[0].strip()


SPELLED = sorted({name for _, o in options() for name in o.opts})


@for_each("name", SPELLED)
def test_an_option_has_one_meaning(name: str) -> None:
    meanings = defaultdict(list)
    for words, option in options():
        if name in option.opts:
            takes, what = meaning(option)
            meanings["" if name in DIFFER else takes, what.removesuffix("s") if name in DIFFER else what].append(words)
    assert len(meanings) == 1, {k: ", ".join(v) for k, v in meanings.items()}


def test_a_short_option_always_stands_for_the_same_long_one() -> None:
    long = defaultdict(set)
    for _, option in options():
        shown = getattr(option, "shown", option.opts)
        for name in shown:
            if not name.startswith("--"):
                long[name].add(tuple(n for n in shown if n.startswith("--")))
    assert {name: names for name, names in long.items() if len(names) != 1} == {}


def test_a_value_has_its_short_option_in_every_command() -> None:
    short = {"--model": "-m", "--platform": "-p", "--np": "-n", "--output": "-o", "--jobs": "-j"}
    without = [f"{w} {o.opts}" for w, o in options() for long, letter in short.items() if long in o.opts and letter not in o.opts]
    assert without == []


def test_the_table_of_options_has_them_all() -> None:
    text = options_page().text
    for words, option in options():
        rows = [line for line in text.splitlines() if line.startswith("|") and f"`{option.opts[-1]}`" in line]
        assert any(f"[{words}](" in row for row in rows), f"{words} {option.opts}"
