"""Man pages and shell completions, made from the commands: ``python packaging/manpages.py FOLDER`` fills FOLDER/man/man1 and the
folders in which bash, zsh and fish look.

click-man writes the pages. It knows neither commands that are loaded when they are used nor Click's verbatim paragraphs (``\\b``), and
escapes nothing: that is done here.
"""

from __future__ import annotations

import os
import re
import sys
import time
from inspect import cleandoc
from pathlib import Path

import click
from click.shell_completion import get_completion_class
from click_man.man import ManPage

from retrompi import __version__
from retrompi.cli.main import cli

COMPLETIONS = {
    "bash": "bash-completion/completions/retrompi",
    "zsh": "zsh/site-functions/_retrompi",
    "fish": "fish/vendor_completions.d/retrompi.fish",
}
SIGNS = {"\u2013": r"\(en", "\u2014": r"\(em", "\u2026": "...", "\u00d7": r"\(mu", "\u00b5": r"\(mc", "\u00bd": r"\(12", "\u2192": r"\(->"}


def roff(text: str) -> str:
    """``text`` with nothing in it that troff would obey."""
    out = text.replace("\\", r"\e").replace("-", r"\-")
    for sign, name in SIGNS.items():
        out = out.replace(sign, name)
    return re.sub(r"^([.'])", r"\\&\1", out, flags=re.MULTILINE)


def paragraphs(text: str) -> str:
    """A command's help: paragraphs, those after ``\\b`` as they are."""
    out = []
    for part in re.split(r"\n\s*\n", cleandoc(text).split("\f")[0].strip("\n")):
        lines = part.strip("\n").split("\n")
        if lines[0].strip() == "\b":
            out.append("\n".join([".nf", *(roff(line.rstrip()) for line in lines[1:]), ".fi"]))
        else:
            out.append(roff("\n".join(line.strip() for line in lines)))
    return "\n\n".join(out)


def summary(command: click.Command) -> str:
    """The first sentence or line of a command's help."""
    first = re.split(r"\n\s*\n", cleandoc(command.help or ""))[0]
    return roff(" ".join(first.split()).rstrip("."))


def pages(command: click.Command, name: str, parent: click.Context | None, date: str) -> dict[str, str]:
    """The page of ``command`` and those of the commands in it, by file name."""
    context = click.Context(command, info_name=name, parent=parent, **command.context_settings)
    page = ManPage(context.command_path)
    page.version, page.date = f"retrompi {__version__}", date
    page.short_help = summary(command)
    page.synopsis = " ".join(command.collect_usage_pieces(context)).replace("\\", r"\e")
    page.description = paragraphs(command.help or "")
    records = [p.get_help_record(context) for p in command.get_params(context) if isinstance(p, click.Option)]
    page.options = [(option, roff(" ".join(said.split()))) for option, said in filter(None, records)]
    out: dict[str, str] = {}
    title = context.command_path.replace(" ", "-")
    if isinstance(command, click.Group):
        within = {n: c for n in command.list_commands(context) if (c := command.get_command(context, n)) is not None and not c.hidden}
        page.commands = [(n, summary(c)) for n, c in within.items()]
        for n, c in within.items():
            out |= pages(c, n, context, date)
    text = str(page).replace(".SH COMMANDS\n.PP\n", ".SH COMMANDS\n")
    heading = f'.TH "{title.upper()}" "1" "{date}" "{page.version}" "retrompi manual"'
    return {f"{title}.1": "\n".join([heading, *text.split("\n")[1:]]), **out}


def main(folder: Path) -> None:
    """Write everything below ``folder``."""
    date = time.strftime("%Y-%m-%d", time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))))
    man = folder / "man" / "man1"
    man.mkdir(parents=True, exist_ok=True)
    for old in man.glob("retrompi*.1"):
        old.unlink()
    for name, text in pages(cli, "retrompi", None, date).items():
        (man / name).write_text(text, encoding="utf-8")
    for shell, place in COMPLETIONS.items():
        kind = get_completion_class(shell)
        assert kind is not None
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(kind(cli, {}, "retrompi", "_RETROMPI_COMPLETE").source() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
