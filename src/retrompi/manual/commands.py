"""A page for every command of the command line, from Click: usage, help text, every argument and option."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator

import click

from retrompi.manual.markdown import ManualPage, anchor, escape, link, slug, table

__all__ = ["command_pages", "commands", "options_page"]


def commands() -> dict[str, click.Command]:
    """Every command by its full name, groups before their commands: ``{"trace": ..., "trace info": ...}``."""
    from retrompi.cli.main import cli

    return dict(_below(cli, ""))


def _below(group: click.Group, words: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group, info_name="retrompi")
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if found is None or found.hidden:
            continue
        yield f"{words}{name}", found
        if isinstance(found, click.Group):
            yield from _below(found, f"{words}{name} ")


def _help_markdown(command: click.Command) -> str:
    """The help text as Markdown: a paragraph that begins with a backspace is shown verbatim."""
    out = []
    for part in inspect.cleandoc(command.help or "").split("\n\n"):
        if part.startswith("\b"):
            first, _, rest = part.lstrip("\b").strip("\n").partition("\n")
            if first != "Examples:":
                out.append("```text\n" + inspect.cleandoc(f"{first}\n{rest}") + "\n```")
            else:
                out += ["Examples:", "```sh\n" + textwrap.dedent(rest) + "\n```"]
        else:
            out.append(escape(part))
    return "\n\n".join(out)


def _default(option: click.Option, context: click.Context) -> str:
    # The default as Click prints it, so that version-specific sentinels never appear.
    extra = option.get_help_extra(context).get("default", "")
    return f"default {extra}" if extra and not option.is_flag else ""


def _option_names(option: click.Option) -> list[str]:
    return [*getattr(option, "shown", option.opts), *option.secondary_opts]


def options_page() -> ManualPage:
    """Every option of every command in one table: its names, what it takes, what it is, and the commands that have it."""
    rows: dict[str, tuple[list[str], dict[str, None], dict[str, list[str]]]] = {}
    for words, command in commands().items():
        context = click.Context(command, info_name=f"retrompi {words}")
        for option in command.params:
            if not isinstance(option, click.Option) or option.hidden:
                continue
            names = [*_option_names(option), *getattr(option, "aliases", [])]
            _, takes, helps = rows.setdefault(max(_option_names(option), key=len), (names, {}, {}))
            if not (option.is_flag or option.count):
                takes[f"`{option.make_metavar(context)}`"] = None
            helps.setdefault(option.help or "", []).append(words)
    body = []
    for _, (names, takes, helps) in sorted(rows.items()):
        for i, (text, where) in enumerate(helps.items()):
            every = ", ".join(link(w, f"{slug(w.split(' ')[0])}.md" + (f"#{slug(w)}" if " " in w else "")) for w in where)
            body.append([", ".join(f"`{n}`" for n in names), ", ".join(takes) if i == 0 else "", escape(text), every])
    out = ["# All options", "An option means the same in every command that has it: its text begins with what it is, and what a command "
           "does with it follows. Names after the first long one are aliases.", table(["option", "takes", "description", "commands"], body)]
    return ManualPage("reference/commands/options.md", "Commands", "All options", "\n\n".join(out) + "\n")


def _options(command: click.Command, words: str) -> str:
    context = click.Context(command, info_name=f"retrompi {words}")
    rows = []
    for parameter in command.get_params(context):
        if isinstance(parameter, click.Option):
            record = None if parameter.hidden or parameter.name == "help" else parameter.get_help_record(context)
            if record is None:
                continue
            names = ", ".join(f"`{n}`" for n in _option_names(parameter))
            takes = "" if parameter.is_flag or parameter.count else f"`{parameter.make_metavar(context)}`"
            more = [_default(parameter, context), "required" if parameter.required else "", "repeatable" if parameter.multiple else ""]
            told = [escape("; ".join(m for m in more if m)), *(f"also `{n}`" for n in getattr(parameter, "aliases", []))]
            rows.append([names, takes, escape(parameter.help or ""), "; ".join(t for t in told if t)])
    return table(["option", "takes", "description", "and"], rows) if rows else ""


def _section(words: str, command: click.Command, level: int) -> list[str]:
    context = click.Context(command, info_name=f"retrompi {words}")
    usage = " ".join(command.collect_usage_pieces(context))
    heading = f"# retrompi {words}" if level == 1 else f"{'#' * level} retrompi {words} {anchor(words)}"
    return [heading, f"```text\nretrompi {words} {usage}\n```", _help_markdown(command), *([_python(words)] if level == 1 else []),
            _options(command, words)]


def _python(name: str) -> str:
    """Which functions of the Python interface a command has; nothing of one that tests/test_api.py will ask about."""
    from retrompi.cli.functions import ALONE, FUNCTIONS

    if name in FUNCTIONS:
        return f"In [Python](../../api.md): {', '.join(f'`retrompi.{one}`' for one in FUNCTIONS[name])}."
    return f"In Python: no function ({escape(ALONE[name])})." if name in ALONE else ""


def command_pages() -> list[ManualPage]:
    """An overview and a page for every top-level command; the commands of a group are sections of its page."""
    from retrompi.cli.main import cli

    every = commands()
    tops = [w for w in every if " " not in w]
    rows = [[link(f"retrompi {w}", f"{slug(w)}.md"), escape(every[w].get_short_help_str(400))] for w in tops]
    context = click.Context(cli, info_name="retrompi")
    out = ["# Commands", _help_markdown(cli), table(["command", "description"], rows), "## Options before the command", _options(cli, ""),
           "Exit codes and what goes to which stream: [files, units, exit codes](../files.md#exit-codes)."]
    assert context.command is cli
    pages = [ManualPage("reference/commands/index.md", "Commands", "Overview", "\n\n".join(out) + "\n")]
    pages.append(options_page())
    for top in tops:
        parts = _section(top, every[top], 1)
        for words, command in every.items():
            if words.startswith(f"{top} "):
                parts += _section(words, command, 1 + words.count(" "))
        pages.append(ManualPage(f"reference/commands/{slug(top)}.md", "Commands", top, "\n\n".join(p for p in parts if p) + "\n"))
    return pages
