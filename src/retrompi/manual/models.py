"""A page for every runtime model and variant: what it represents, every number with its source, its fit, the claims that judge it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from retrompi.base.units import format_quantity
from retrompi.manual.markdown import ManualPage, cite, escape, link, slug, table
from retrompi.papers.judging.evidence import evidence
from retrompi.papers.statements.sources import rows as reference_rows
from retrompi.render.atlas.transfer_table import HELD, NUMBERS, numbers, statement_rows
from retrompi.render.cards import determined
from retrompi.render.cards.dossier import model_dossier
from retrompi.spec import registry

__all__ = ["model_pages", "range_text"]

_ROOT = "../"


def range_text(row: Mapping[str, Any]) -> str:
    """``low .. high`` of a parameter's row, or its choices."""
    if row.get("choices"):
        return ", ".join(row["choices"])
    if row["low"] is None and row["high"] is None:
        return ""
    low, high = ("?" if row[k] is None else format_quantity(row[k], row["unit"]) for k in ("low", "high"))
    return low if low == high else f"{low} .. {high}"


def _parameters(card: Mapping[str, Any], known: Mapping[str, Any]) -> str:
    rows = [
        [f"`{card['name'].partition(':')[0]}.{r['name']}`", escape(r["text"]), escape(r["unit"]), escape(range_text(r)), escape(r["cost"]),
         cite(r["help"], known, _ROOT), cite(r["source"], known, _ROOT)]
        for r in card["parameters"]
    ]
    return table(["key", "value", "unit", "range or choices", "cost", "what it is", "source"], rows)


def _fit(card: Mapping[str, Any], known: Mapping[str, Any]) -> list[str]:
    fit = card["fit"]
    if fit is None:
        return ["No parameter was fitted; each has the value given by its source."]
    out = [f"Fitted values of `{fit['of']}`, {fit.get('date', '')}, seed {fit.get('seed', '-')}; {escape(fit.get('note', ''))}."]
    if fit["values"]:
        values = [[f"`{v['name']}`", escape(v["value"]), escape(" .. ".join(v["range"] or ())), escape(v["identifiability"])]
                  for v in fit["values"]]
        out.append(table(["parameter", "value", "searched", "how well it is determined"], values))
    if fit["residuals"]:
        rows = [[cite(r["claim"], known, _ROOT), cite(r["says"], known, _ROOT), f"{r['observed']:.6g} {escape(r['unit'])}",
                 f"{r['half_ranges']:+.2f}"] for r in fit["residuals"]]
        out.append(table(["statement", "what it says", "simulated", "half ranges from the middle"], rows))
    return out


def _posterior(told: Mapping[str, Any] | None) -> list[str]:
    if told is None:
        return []
    rows = [[f"`{path}`", *map(escape, rest)] for path, *rest in map(determined.texts, told["parameters"])]
    return [f"## Posterior\n\nWhat the statements of use `calibrate` say of each parameter ([how to read it](../../uncertainty.md)): "
            f"{escape(determined.facts(told))}.", table(list(determined.HEAD), rows)]


def _page(name: str, known: Mapping[str, Any]) -> ManualPage:
    card = model_dossier(name)
    out = [
        f"# {escape(card['title'])}",
        f"`{name}`, version {escape(card['version'])}, {escape(card['years'])}: {escape(card['summary'])}.",
    ]
    if card["variant_of"]:
        out.append(f"A variant of {link(card['variant_of'], slug(card['variant_of']) + '.md')}: {escape(card['variant_note'])}")
    if card["stands_for"]:
        out.append(cite(card["stands_for"], known, _ROOT))
    if card["variants"]:
        out += ["Variants:", "\n".join(f"- {link(v['name'], slug(v['name']) + '.md')}: {escape(v['note'])}" for v in card["variants"])]
    out += ["## Parameters", f"Each is overridden by `--set {name.partition(':')[0]}.KEY=VALUE`.", _parameters(card, known)]
    out.append("## Collectives")
    out.append("The first matching row is used ([the algorithms](../../collectives.md)); `--set coll.OPERATION=ALGORITHM` selects another.")
    collectives = [
        [f"`{c['operation']}`", f"`{c['algorithm']}`", escape(c["when"]), cite(c["source"], known, _ROOT)] for c in card["collectives"]
    ]
    out.append(table(["operation", "algorithm", "when", "source"], collectives))
    out += ["## Fit", *_fit(card, known), *_posterior(card["posterior"])]
    if card["needs"] is not None:
        out.append("## Hardware and system")
        out.append(f"It needs {escape(card['needs']['text'])} ({cite(card['needs']['source'], known, _ROOT)}); elsewhere it is refused.")
    out.append("## Calibrated range")
    told = card["calibrated"]
    out.append("None is stated: every use is noted." if told is None else
               f"{escape(told['text'])} ({cite(told['source'], known, _ROOT)}). A use outside of it is noted.")
    if card["transfer"]:
        out.append("## Other machines")
        out.append(f"Where its library is known to have run ({link('transfer', '../../transfer.md')}), by `validate/transfer.csv`.")
        for head, told in ((NUMBERS, numbers(card["transfer"])), (HELD, statement_rows(card["transfer"]))):
            if told:
                rows = [[escape(str(r[k] or "")) for k in (*head[1:], "ref", "note")] for r in told]
                out.append(table([*head[1:], "source", "note"], rows))
    out.append("## Statements that judge it")
    judged = [
        [cite(j["id"], known, _ROOT), escape(j["use"]), escape(j["says"]), escape(j["where"]), escape(j["how"])] for j in card["judged"]
    ]
    out.append(table(["statement", "use", "what it says", "where", "check"], judged) if judged else "None names it.")
    own = evidence(registry.model(name))[0]
    if own:
        rows = [[escape(c.id), escape(c.use), escape(c.observable), f"{escape(c.value)} {escape(c.unit)}", escape(c.source)] for c in own]
        out += ["## Evidence of its own", "From its `evidence.toml`.", table(["statement", "use", "of what", "value", "source"], rows)]
    out.append(f"`retrompi models show {name}` prints this card, with the newest verdicts of your store.")
    return ManualPage(f"reference/models/{slug(name)}.md", "Models", name, "\n\n".join(out) + "\n")


def model_pages() -> list[ManualPage]:
    """An overview and a page for every model of the package; the user's own models have none."""
    known = reference_rows()
    found = {name: cls for name, cls in registry.models().items() if registry.origin(cls.folder()) == "retrompi"}
    rows = [[link(name, f"{slug(name)}.md"), escape(c.title), escape(c.version), escape(c.years), escape(c.variant_note or c.summary)]
            for name, c in found.items()]
    text = "\n\n".join([
        "# Runtime models",
        "A model is a folder in `models/`; a variant inherits and overrides what differs ([how to add one](../../add-a-runtime.md)).",
        table(["name", "runtime", "version", "years", "what it stands for"], rows),
    ])
    return [ManualPage("reference/models/index.md", "Models", "Overview", text + "\n"), *(_page(name, known) for name in found)]
