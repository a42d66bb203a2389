"""Model cards for reviewers: every number with the text of its source row, the fit, and the claims that judge it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from retrompi.papers.judging.evidence import evidence
from retrompi.papers.predict import transfer
from retrompi.papers.statements.claims import Claim, checks, judging, load
from retrompi.papers.statements.sources import Citation, citations_in, rows
from retrompi.render.cards import determined
from retrompi.spec import registry
from retrompi.spec.collectives import card_rows
from retrompi.spec.machine import topology
from retrompi.spec.machine.machines import Machine, Network
from retrompi.spec.model import RuntimeModel, fit_tables, model_values
from retrompi.spec.platform import Platform

__all__ = ["how_of", "model_dossier", "part_dossier", "platform_dossier", "references"]

Row = dict[str, Any]
_HOW = ("kind", "mode", "metric", "sizes", "feature", "shape", "better", "worse", "relation", "paths", "by", "op",
        "at_least", "path", "unit")


def _claim_text(claim: Claim) -> str:
    """The text of a claim, with its reading tolerance."""
    unit = "" if claim.unit in ("", "-") else f" {claim.unit}"
    spread = "" if claim.low is None or claim.high is None else f" (read as {claim.low:g}..{claim.high:g})"
    where = f" [{claim.configuration}]" if claim.configuration.strip(" -") else ""
    return f"{claim.observable}{where}: {claim.value}{unit}{spread}"


def how_of(entries: Sequence[Mapping[str, Any]]) -> str:
    """A short description of a claim's checks."""

    def text(value: Any) -> str:
        if isinstance(value, Mapping):
            return " ".join(f"{k}={v}" for k, v in value.items())
        return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)

    return "; ".join(", ".join(f"{k} {text(c[k])}" for k in _HOW if k in c) for c in entries)


def _judging(cls: type[RuntimeModel]) -> list[tuple[Claim, tuple[Mapping[str, Any], ...]]]:
    """The claims whose checks concern this model (a variant's base model if no claim names the variant), and its own evidence."""
    own, how = evidence(cls)
    return [(c, checks()[c.id]) for c in judging(cls.name)] + [(c, how[c.id]) for c in own]


def _fit(cls: type[RuntimeModel]) -> Row | None:
    """The fit in force: the model's, or that of the model it varies."""
    tables = fit_tables(cls.folder())
    base = cls.name.partition(":")[0]
    name = cls.name if cls.name in tables else base
    if name not in tables:
        return None
    t = tables[name]
    meta = dict(t.get("meta", {}))
    known = {c.id: c for c in [*load(), *evidence(cls)[0]]}
    residuals = [
        {"claim": i, "observed": r[0], "low": r[1], "high": r[2], "unit": r[3], "half_ranges": r[4],
         "says": _claim_text(known[i]) if i in known else "", "where": known[i].source.strip() if i in known else ""}
        for i, r in t.get("residuals", {}).items()
    ]
    values = [
        {"name": k, "value": v, "range": t.get("bounds", {}).get(k), "identifiability": meta.get("identifiability", {}).get(k, "")}
        for k, v in t.get("values", {}).items()
    ]
    told = {k: v for k, v in meta.items() if k != "identifiability"}
    curves = {part: rows for part, rows in t.items() if part.endswith(("-segments", "-thresholds"))}
    return {"of": name, "file": str(cls.folder() / "fit.toml"), "values": values, "residuals": residuals, "curves": curves, **told}


def _calibrated_range(cls: type[RuntimeModel]) -> Row | None:
    """The model's calibrated range, with the text of its source rows; None when it states none."""
    known = cls.calibrated
    if known is None:
        return None
    return {"text": str(known), "sizes": list(known.sizes), "ranks": list(known.ranks), "platforms": list(known.platforms),
            "source": known.source, "rows": [c.row() for c in citations_in(known.source)]}


def model_dossier(model: str, sets: Sequence[str] = (), verdicts: Iterable[Mapping[str, Any]] = ()) -> Row:
    """The complete card of a model as one JSON object.

    Keys name, title, version, years, summary, stands_for, folder, hash, variant_of, variant_note, variants; ``parameters`` (rows of
    `Values.describe` with ``rows``, the text of each source's row); ``collectives`` (rows of `described`); ``fit`` (values, residuals
    against the claims' text; None without); ``posterior`` (`determined.card`; None without); ``calibrated`` (sizes, ranks, platforms,
    source; None without); ``judged`` (claims with ``verdict``, ``observed`` and ``finding`` from ``verdicts``); ``transfer`` (rows of
    `papers.transfer`); ``failures`` (ids). Raises InputError for a posterior that cannot be read,
    UsageError for an unknown model.
    """
    cls = registry.model(model)
    latest = {str(v["id"]): v for v in verdicts}
    values = model_values(cls, sets)
    parameters = [{**r, "rows": [c.row() for c in citations_in(r["source"], r["help"])]} for r in values.describe()]
    judged = []
    for claim, entries in _judging(cls):
        v = latest.get(claim.id, {})
        reading = " ".join(str(c["reading"]) for c in entries if "reading" in c)
        judged.append({"id": claim.id, "use": claim.use, "says": _claim_text(claim), "where": claim.source.strip(), "how": how_of(entries),
                       "reading": reading, "verdict": v.get("verdict", "not judged yet"),
                       "observed": v.get("observed"), "unit": v.get("unit", claim.unit), "finding": v.get("note", "")})
    module = sys.modules[cls.__module__]
    fit = _fit(cls)
    return {
        "name": cls.name,
        "title": cls.title,
        "version": cls.version,
        "years": cls.years,
        "summary": cls.summary,
        "stands_for": " ".join((inspect.getdoc(module) or "").split()),
        "stands_for_rows": [c.row() for c in citations_in(inspect.getdoc(module) or "")],
        "folder": str(cls.folder()),
        "origin": registry.origin(cls.folder()),
        "hash": cls.hash(),
        "variant_of": cls.variant_of,
        "variant_note": cls.variant_note,
        "variants": [{"name": name, "note": note} for name, note in _family(cls)],
        "parameters": parameters,
        "collectives": card_rows(cls.collectives, values),
        "fit": fit,
        "posterior": determined.of_model(cls),
        "needs": None if cls.needs is None else {"text": str(cls.needs), "source": cls.needs.source},
        "calibrated": _calibrated_range(cls),
        "judged": judged,
        "transfer": transfer.with_verdicts(transfer.shipped_rows(cls.name), {i: str(v["verdict"]) for i, v in latest.items()}),
        "failures": [j["id"] for j in judged if j["verdict"] == "fail"],
    }


def _family(cls: type[RuntimeModel]) -> list[tuple[str, str]]:
    """(name, note) of the variants in the same folder."""
    seen, out = [c for c in cls.__mro__ if issubclass(c, RuntimeModel) and "name" in vars(c)], {}
    while seen:
        here = seen.pop()
        seen += here.__subclasses__()
        if here.name != cls.name and ":" in here.name and here.folder() == cls.folder():
            out[here.name] = here.variant_note
    return sorted(out.items())


def platform_dossier(platform: Platform) -> Row:
    """A platform's card: texts, hosts, ``quantities`` with ``rows`` as of `model_dossier`, ``kernels`` of its hosts, its ``fits``."""
    from retrompi.base.errors import UsageError
    from retrompi.spec.machine import kernels

    def with_rows(r: Row) -> Row:
        return {**r, "rows": [c.row() for c in citations_in(r["source"], r["help"])]}

    loops: list[Row] = []
    for h in platform.hosts:
        try:
            own = kernels.quantities(platform, h.name)
        except UsageError:
            continue  # a host without described loops
        loops += [with_rows({"path": f"{h.name}.{k}", "value": q.value, "text": q.text, "unit": q.unit, "source": q.source,
                             "help": q.help, "low": q.low, "high": q.high}) for k, q in own.items()]
    return {
        "name": platform.name,
        "title": platform.title,
        "years": platform.years,
        "summary": platform.summary,
        "path": "" if platform.path is None else str(platform.path),
        "hash": platform.hash,
        "hosts": [{"name": h.name, "os": h.os, "byte_order": h.byte_order} for h in platform.hosts],
        "link": f"{platform.link.kind} {platform.link.of_kind.text(platform.link.shape)}".strip(),
        "placements": [
            {"name": name, "ranks": [platform.hosts[h].name + (f" core {p.cores[i]}" if p.cores else "") for i, h in enumerate(p)]}
            for name, p in platform.placements.items()
        ],
        "quantities": [with_rows(r) for r in platform.describe()],
        "kernels": loops,
        "fits": [] if platform.path is None else _fits_beside(platform.path),
    }


def _fits_beside(path: Path) -> list[Row]:
    """The fits of a platform, host or network in ``path``: by whom, values, meta and the rows that they were fitted to."""
    from retrompi.base import toml as toml_text

    file = path.with_name(f"{path.stem}.fit.toml")
    found = []
    for by, told in toml_text.read(file, "fit")[1].items() if file.is_file() else ():
        names = told.get("meta", {}).get("claims", [])
        found.append({"by": by, "file": str(file), **told, "rows": [rows()[i].row() for i in names if i in rows()]})
    return found


def part_dossier(part: Machine | Network) -> Row:
    """The card of a host or a network of the library: texts and ``quantities`` with ``rows`` as of `model_dossier`."""
    if isinstance(part, Machine):
        kind, about = "host", f"{part.os}, {part.byte_order} endian"
    else:
        kind, about = "network", f"link: {f'{part.kind} {topology.of(part.kind).text(part.shape)}'.strip()}"
    return {
        "name": part.name, "kind": kind, "title": part.title, "years": part.years, "summary": part.summary, "path": str(part.path),
        "about": about, "like": part.like, "fits": _fits_beside(part.path),
        "quantities": [
            {"path": path, "value": q.value, "text": q.text, "unit": q.unit, "source": q.source, "help": q.help, "low": q.low,
             "high": q.high, "rows": [c.row() for c in citations_in(q.source, q.help)]}
            for path, q in part.quantities.items()
        ],
    }


def references(parameters: Iterable[Row]) -> list[Citation]:
    """Every reference row cited by the numbers of a card, each once, in the card's order."""
    return list(dict.fromkeys(rows()[c["id"]] for p in parameters for c in p["rows"]))
