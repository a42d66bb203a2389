"""``retrompi models``: the runtimes there are, and their cards."""

from __future__ import annotations

from typing import Any

import click

from retrompi.cli.options import complete_model, csv_option, debug_option, json_option, set_option
from retrompi.cli.output import Column, as_text, emit
from retrompi.units import format_quantity

LIST = (
    Column("name", "name"),
    Column("version", "version"),
    Column("years", "years"),
    Column("variant_of", "variant of"),
    Column("title", "title"),
)
LIST_KEYS = ("name", "title", "version", "years", "summary", "variant_of", "variant_note", "parameters", "folder")
CARD = (
    Column("name", "parameter"),
    Column("text", "value", right=True),
    Column("unit", "unit"),
    Column("range", "range"),
    Column("source", "source"),
    Column("help", "meaning"),
)
CARD_KEYS = ("name", "value", "text", "unit", "low", "high", "choices", "source", "help", "overridden")


@click.group()
@debug_option
def command() -> None:
    """List the runtime models or show one with its parameters and sources."""


@command.command("list")
@json_option
@csv_option
@debug_option
def list_models(as_json: bool, as_csv: bool) -> None:
    """List every model and variant."""
    from retrompi import registry

    rows = [
        {
            "name": name,
            "title": cls.title,
            "version": cls.version,
            "years": cls.years,
            "summary": cls.summary,
            "variant_of": cls.variant_of,
            "variant_note": cls.variant_note,
            "parameters": len(cls.params()),
            "folder": str(cls.folder()),
        }
        for name, cls in registry.models().items()
    ]
    emit(rows, LIST, as_json=as_json, as_csv=as_csv, keys=LIST_KEYS, empty="no models")


def range_of(row: dict[str, Any]) -> str:
    """``low..high`` of a card's row, or its choices."""
    if row.get("choices"):
        return " | ".join(row["choices"])
    if row.get("low") is None and row.get("high") is None:
        return ""
    ends = ["?" if row[k] is None else format_quantity(row[k], row["unit"]) for k in ("low", "high")]
    return "..".join(ends) if ends[0] != ends[1] else ends[0]


@command.command("show")
@click.argument("model", shell_complete=complete_model)
@set_option
@json_option
@csv_option
@debug_option
def show_model(model: str, sets: tuple[str, ...], as_json: bool, as_csv: bool) -> None:
    """Show MODEL (a name or a folder): what it stands for and every parameter with its source."""
    from retrompi import registry
    from retrompi.runtime import model_values

    cls = registry.model(model)
    rows = model_values(cls, sets).describe()
    if not (as_json or as_csv):
        click.echo(f"{cls.name}: {cls.title}\n{cls.summary}\nversion {cls.version}, {cls.years}, in {cls.folder()}")
        if cls.variant_of:
            click.echo(f"variant of {cls.variant_of}: {cls.variant_note}")
        click.echo("")
        rows = [{**row, "range": range_of(row), "text": as_text(row["text"])} for row in rows]
    emit(rows, CARD, as_json=as_json, as_csv=as_csv, keys=CARD_KEYS, empty="no parameters")
