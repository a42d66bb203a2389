"""``retrompi completion``: shell completion."""

from __future__ import annotations

import os
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from retrompi.base.errors import UsageError
from retrompi.cli.bundle import debug_option

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS), required=False)
@debug_option
@click.pass_context
def command(ctx: click.Context, shell: str | None) -> None:
    """Print the shell completion script.

    \b
    Examples:
      retrompi completion bash >> ~/.bashrc
      retrompi completion zsh >> ~/.zshrc
      retrompi completion fish > ~/.config/fish/completions/retrompi.fish
    """
    chosen = shell or Path(os.environ.get("SHELL", "")).name
    kind = get_completion_class(chosen) if chosen in SHELLS else None
    if kind is None:
        raise UsageError(f"$SHELL is '{chosen}'; name one of {', '.join(SHELLS)}: retrompi completion bash", code="missing-option")
    click.echo(kind(ctx.find_root().command, {}, "retrompi", "_RETROMPI_COMPLETE").source())
