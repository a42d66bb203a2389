"""``retrompi studio``: the application in the browser."""

from __future__ import annotations

import os
import secrets
import sys

import click

from retrompi.base.errors import UsageError
from retrompi.cli.options import debug_option, store_option

PORT = 8418


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="Port; 0: any that is free.")
@click.option("--host", metavar="ADDRESS", help="Address to listen on (default: 127.0.0.1; with --public: every address of this machine).")
@click.option("--public", is_flag=True, help="Let other machines in, with a token that is made unless one is given.")
@click.option("--token", metavar="TEXT", envvar="RETROMPI_STUDIO_TOKEN", show_envvar=True, help="What whoever opens it has to know.")
@click.option("--allow-host", "names", multiple=True, metavar="NAME", help="A further name that browsers ask this machine by.")
@click.option("--no-browser", is_flag=True, help="Open no browser.")
@store_option
@debug_option
@click.pass_context
def command(
    ctx: click.Context, port: int, host: str | None, public: bool, token: str | None, names: tuple[str, ...], no_browser: bool,
    store: str | None,
) -> None:
    """Start the studio: curves, what-if sliders, the path of a message, studies and labs in a browser; Ctrl-C ends it."""
    from retrompi.base.signals import terminated_is_interrupted
    from retrompi.studio.serve import Studio, is_loopback

    host = host or ("0.0.0.0" if public else "127.0.0.1")
    if public and is_loopback(host):
        raise UsageError(
            f"--public with --host {host}: nobody else can reach that address; leave --host out, or give another", code="unused-option"
        )
    if public and token is None:
        token = secrets.token_urlsafe(18)
    chosen = store if store is not None else (ctx.find_root().obj or {}).get("store")
    with terminated_is_interrupted():
        studio = Studio(host=host, port=port, token=token, store=chosen, names=names)

        def ready() -> None:
            screen = sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
            if not no_browser and screen:
                import webbrowser

                webbrowser.open(studio.entrance)

        try:
            click.echo(f"studio: {studio.entrance}")
            if not is_loopback(host):
                click.echo("anyone who has the token may use it; what is sent is not encrypted", err=True)
            click.echo("Ctrl-C ends it", err=True)
            studio.run(ready)
        except KeyboardInterrupt:
            click.echo("the studio has ended", err=True)
        finally:
            studio.close()
