"""``retrompi models``: the available runtime models, and their cards."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from retrompi.base.units import format_quantity
from retrompi.cli.bundle import debug_option, option, options
from retrompi.cli.options import Overrides, StoreOutput, complete_model
from retrompi.cli.output import Column, Output, as_text, print_json, print_table, say, width

LIST = (
    Column("name", "name"),
    Column("version", "version"),
    Column("years", "years"),
    Column("variant_of", "variant of"),
    Column("origin", "from"),
    Column("title", "title"),
)
LIST_KEYS = ("name", "title", "version", "years", "summary", "variant_of", "variant_note", "parameters", "folder", "origin")
CARD = (
    Column("name", "parameter"),
    Column("text", "value", right=True),
    Column("unit", "unit"),
    Column("range", "range"),
    Column("cost", "cost"),
    Column("source", "source"),
    Column("help", "meaning"),
)
COLLECTIVES = (
    Column("operation", "collective"),
    Column("algorithm", "algorithm"),
    Column("when", "when"),
    Column("source", "source"),
)
CARD_KEYS = ("name", "value", "text", "unit", "low", "high", "choices", "cost", "source", "help", "overridden")


@click.group()
@debug_option
def command() -> None:
    """List the runtime models, or show one with its parameters and sources.

    \b
    Examples:
      retrompi models list
      retrompi models show wmpi
    """


@command.command("list")
@options(output=Output)
def list_models(output: Output) -> None:
    """List the models and their variants.

    \b
    Examples:
      retrompi models list
      retrompi models list --json
    """
    from retrompi.spec import registry

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
            "origin": registry.origin(cls.folder()),
        }
        for name, cls in registry.models().items()
    ]
    warn_of_broken()
    output.emit(rows, LIST, keys=LIST_KEYS, empty="no models", cut=True)


def warn_of_broken(models: bool = True) -> None:
    """Report each unusable model and platform of the user in a line on stderr; the others remain usable."""
    from retrompi.spec import registry

    for name, error in registry.load_errors(models).items():
        click.echo(f"warning: '{name}' is ignored: {error}", err=True)


def range_of(row: dict[str, Any]) -> str:
    """The range ``low..high`` of a card's row, or its choices."""
    if row.get("choices"):
        return " | ".join(row["choices"])
    if row.get("low") is None and row.get("high") is None:
        return ""
    ends = ["?" if row[k] is None else format_quantity(row[k], row["unit"]) for k in ("low", "high")]
    return "..".join(ends) if ends[0] != ends[1] else ends[0]


def newest_verdicts(output: StoreOutput) -> list[dict[str, Any]]:
    """The newest verdict of every claim in the store; empty without a store."""
    from retrompi.base.errors import StoreError
    from retrompi.store import default_path

    named = output.where or os.environ.get("RETROMPI_STORE")
    if not named and not default_path().exists():
        return []  # showing a card does not create a store
    try:
        return output.open(write=False).verdicts()
    except StoreError:
        return []


def print_rows_cited(cited: Sequence[Any]) -> None:
    """The rows of the reference cited by a card's numbers: statement, place of publication, and caveat."""
    if not cited:
        return
    say("\nthe claims cited above")
    for c in cited:
        say(f"  {c.id}  {c.text}")
        say(f"      in: {c.where}" + (f" [{c.use}]" if c.use else ""))
        if c.note:
            say(f"      note: {c.note}")


def _of_curve(part: str, row: Mapping[str, Any]) -> str:
    """A segment or a threshold of a fitted curve in a line."""
    kind, _, what = part.rpartition("-")
    low, high = (f"{format_quantity(float(row[k]), 'B')}" if isinstance(row[k], int) else "" for k in ("low_B", "high_B"))
    if what == "segments":
        rate = "any rate" if row["rate_Bps"] == float("inf") else format_quantity(float(row["rate_Bps"]), "B/s")
        return f"{kind} from {low}{' to below ' + high if high else ''}: {format_quantity(float(row['latency_s']), 's')} + size / {rate}"
    return f"{kind} threshold {format_quantity(float(row['size_B']), 'B')} ({row['how']}; in {low} .. {high}): {float(row['step']):+.1%}"


def _print_fit(card: dict[str, Any]) -> None:
    fit = card["fit"]
    if fit is None:
        say("\nfit: none; every value above is as given by its source")
        return
    searched = f", seed {fit['seed']}, {fit['evaluations']} evaluations" if "seed" in fit else ""
    by = f" by {fit['by']}" if "by" in fit else ""
    say(f"\nfit of {fit['of']}{by}: {fit.get('date', '?')}, code {fit.get('version', '?')}{searched}; {fit.get('note', '')}")
    for v in fit["values"]:
        between = f" in {v['range'][0]}..{v['range'][1]}" if v["range"] else ""
        say(f"  {v['name']} = {v['value']}{between}: {v['identifiability']}")
    for part, rows in fit["curves"].items():
        for row in rows.values():
            say(f"  {_of_curve(part, row)}")
    for column, source in fit.get("sources", {}).items():
        say(f"  {column}: {source}")
    for r in fit["residuals"]:
        say(f"  {r['claim']}  simulated {as_text(r['observed'])} {r['unit']}, read as {as_text(r['low'])}..{as_text(r['high'])}: "
                   f"{r['half_ranges']:+.2f} half ranges from the middle")
        if r["says"]:
            say(f"      {r['says']}\n      in: {r['where']}")


def _print_posterior(told: dict[str, Any] | None) -> None:
    """The posterior of each parameter, the best determined first."""
    from retrompi.render.cards.determined import HEAD, facts, texts

    if told is None:
        return
    say(f"\nposterior of {facts(told)}")
    columns = [Column(head, head, right=0 < i < len(HEAD) - 1) for i, head in enumerate(HEAD) if head != "median"]  # 100 columns of text
    print_table([dict(zip(HEAD, texts(row), strict=True)) for row in told["parameters"]], columns)


def _print_range(card: dict[str, Any]) -> None:
    needs, told = card["needs"], card["calibrated"]
    if needs is not None:
        say(f"\nneeds: {needs['text']} ({needs['source']}); another platform is refused, unless --what-if-hardware asks for a fiction")
    if told is None:
        say("\ncalibrated range: none specified; every use is noted")
        return
    say(f"\ncalibrated range: {told['text']} ({told['source']}); a use outside it is noted")
    for c in told["rows"]:
        say(f"  {c['id']}  {c['text']}\n      in: {c['where']}")


def _print_transfer(card: dict[str, Any]) -> None:
    from retrompi.cli.transfer import columns
    from retrompi.render.atlas.transfer_table import HELD, NUMBERS, numbers, statement_rows

    for head, rows in ((NUMBERS, numbers(card["transfer"])), (HELD, statement_rows(card["transfer"]))):
        if rows:
            say("\nmachines that its library is known to have run on" + (" (docs/transfer.md)" if head is NUMBERS else ": statements"))
            print_table(rows, columns((*head[1:], "ref")))


def _print_judged(card: dict[str, Any]) -> None:
    judged = card["judged"]
    say(f"\njudged by {len(judged)} claims" + ("" if judged else ": none names it"))
    for j in judged:
        seen = "" if j["observed"] is None else f": {as_text(j['observed'])} {j['unit'] or ''}".rstrip()
        say(f"  {j['id']}  [{j['use']}] {j['verdict']}{seen}")
        say(f"      {j['says']}\n      in: {j['where']}; check: {j['how']}")
        if j["reading"]:
            say(f"      reading: {j['reading']}")
        if j["finding"]:
            say(f"      finding: {j['finding']}")
    if card["failures"]:
        say(f"\nknown failures: {', '.join(card['failures'])} (docs/validation.md explains those of the papers)")
    elif any(j["verdict"] == "not judged yet" for j in judged):
        say("\nnot judged yet in this store: run 'retrompi validate' (with --model for a model of your own)")
    else:
        say("\nknown failures: none")


def _print_summary(card: dict[str, Any]) -> None:
    """A screen: the parameters' values and kinds of sources, the calibrated range, the verdicts."""
    if card["variant_of"]:
        say(f"variant of {card['variant_of']}: {card['variant_note']}")
    if card["variants"]:
        say(f"variants: {', '.join(v['name'] for v in card['variants'])}")
    rows = card["parameters"]
    kinds = Counter(str(row["source"]).partition(":")[0].partition(" ")[0] for row in rows)
    say(f"\n{len(rows)} parameters; their sources: {', '.join(f'{kind} {n}' for kind, n in kinds.most_common())}")
    for line in in_columns([f"{row['name']}={as_text(row['text'])}" for row in rows]):
        say(line)
    needs, told = card["needs"], card["calibrated"]
    if needs is not None:
        say(f"\nneeds: {needs['text']} ({needs['source']}); elsewhere refused, unless --what-if-hardware asks for a fiction")
    say("\ncalibrated range: " + ("none specified; every use is noted" if told is None else f"{told['text']} ({told['source']})"))
    judged = [j for j in card["judged"] if j["use"] in ("calibrate", "validate")]
    verdicts = Counter(j["verdict"] for j in judged)
    say(f"judged by {len(judged)} claims" + (f": {', '.join(f'{word} {n}' for word, n in verdicts.most_common())}" if judged else ""))
    if card["failures"]:
        say(f"known failures: {', '.join(card['failures'])} (retrompi claims show ID; docs/validation.md)")
    elif verdicts["not judged yet"]:
        say("not judged yet in this store: run 'retrompi validate' (with --model for a model of your own)")
    say(f"\nranges, sources, collectives, fit and claims: retrompi models show {card['name']} --full")


def in_columns(words: Sequence[str], lead: str = "  ") -> list[str]:
    """``words`` in columns of equal width, as many beside each other as fit `width`; each begins with ``lead``."""
    if not words:
        return []
    wide = max(map(len, words)) + 2
    beside = max((width() - len(lead)) // wide, 1)
    return [lead + "".join(f"{w:<{wide}}" for w in words[i : i + beside]).rstrip() for i in range(0, len(words), beside)]


@dataclass(frozen=True)
class ShowModelOptions(Overrides):
    """Options of ``retrompi models show``."""

    full: bool = option("Print all of it instead of a summary: the whole card.", "--full")


@command.command("show")
@click.argument("model", shell_complete=complete_model)
@options(given=ShowModelOptions, output=StoreOutput)
@click.pass_context
def show_model(ctx: click.Context, model: str, given: ShowModelOptions, output: StoreOutput) -> None:
    """Show MODEL as a card that can be checked against its sources.

    MODEL is a name or a folder. The summary gives what the model represents, the values of its parameters, how many of them come from
    which kind of source, where it is calibrated, and how it is judged. With --full: every parameter with its unit, range and source,
    and what that source says; the algorithms of its collectives; its fit; the claims that judge it, with their newest verdicts in
    the store; and its known failures.

    \b
    Examples:
      retrompi models show wmpi
      retrompi models show wmpi --full
      retrompi models show wmpi --set wmpi.pool=10MiB --csv
    """
    from retrompi.render.cards.dossier import model_dossier, references

    card = model_dossier(model, given.sets, newest_verdicts(output))
    rows = card["parameters"]
    if output.as_json:
        print_json(card)
        return
    if output.as_csv:
        output.emit(rows, CARD, keys=CARD_KEYS, empty="no parameters")
        return
    say(f"{card['name']}: {card['title']}\n{card['summary']}\nversion {card['version']}, {card['years']}, in {card['folder']}"
               + (" (your own)" if card["origin"] == "user" else ""))
    if not given.full:
        _print_summary(card)
        return
    if card["variant_of"]:
        say(f"variant of {card['variant_of']}: {card['variant_note']}")
    for v in card["variants"]:
        say(f"variant {v['name']}: {v['note']}")
    if card["stands_for"]:
        say(f"\n{card['stands_for']}")
    say("")
    shown = [{**row, "range": range_of(row), "text": as_text(row["text"])} for row in rows]
    print_table(shown, CARD, empty="no parameters")
    say("\ncollectives: the first matching row is used (docs/collectives.md; --set coll.OPERATION=ALGORITHM replaces it)")
    print_table(card["collectives"], COLLECTIVES, empty="none")
    print_rows_cited(references([{"rows": card["stands_for_rows"]}, *rows]))
    _print_fit(card)
    _print_posterior(card["posterior"])
    _print_range(card)
    _print_transfer(card)
    _print_judged(card)
