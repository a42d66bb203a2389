"""``retrompi studio``: the web interface."""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import dataclass

import click

from retrompi.base.errors import UsageError
from retrompi.cli.bundle import option, options
from retrompi.cli.options import StoreOption, open_browser

PORT = 8418


@dataclass(frozen=True)
class StudioOptions(StoreOption):
    """Options of ``retrompi studio``."""

    port: int = option("Port to listen on; 0 takes any free port.", type=click.IntRange(0, 65535), default=PORT)
    host: str | None = option(
        "Address to listen on (default: 127.0.0.1; with --public: every address of this machine).", metavar="ADDRESS")
    public: bool = option("Accept connections from other machines; an access token is generated unless one is given.")
    token: str | None = option("Access token.", metavar="TEXT", envvar="RETROMPI_STUDIO_TOKEN", show_envvar=True)
    names: tuple[str, ...] = option(
        "Another host name that browsers may use for this machine (repeatable).", "--allow-host", metavar="NAME")
    no_browser: bool = option("Do not open a browser.")


@click.command()
@options(given=StudioOptions)
def command(given: StudioOptions) -> None:
    """Start the web interface in a browser; Ctrl-C stops it.

    Its pages show curves, what-if sliders, the path of a message, studies and labs.

    \b
    Examples:
      retrompi studio
      retrompi studio --port 0 --no-browser
      retrompi studio --public --host 192.168.1.5
    """
    from retrompi.base.signals import terminated_is_interrupted
    from retrompi.studio.serve import Studio, is_loopback

    host = given.host or ("0.0.0.0" if given.public else "127.0.0.1")
    if given.public and is_loopback(host):
        raise UsageError(
            f"--public with --host {host}: no other machine can reach that address; omit --host or give another", code="unused-option"
        )
    token = secrets.token_urlsafe(18) if given.public and given.token is None else given.token
    with terminated_is_interrupted():
        studio = Studio(host=host, port=given.port, token=token, store=given.where, names=given.names)

        def ready() -> None:
            if not given.no_browser:
                open_browser(studio.entrance)

        try:
            with suppress(KeyboardInterrupt):  # the server may take it for itself, and return
                click.echo(f"studio: {studio.entrance}")
                if not is_loopback(host):
                    click.echo("anyone with the token can use it; the connection is not encrypted", err=True)
                click.echo("press Ctrl-C to stop", err=True)
                studio.run(ready)
            click.echo("the studio has stopped", err=True)
        finally:
            studio.close()
