"""Provenance of a study's results: code, models, platforms, sources of the varied parameters, and points outside calibrated ranges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from retrompi.base.errors import RetrompiError
from retrompi.sim.cautions import Caution, calibration, merge_cautions
from retrompi.spec.conditions.network_model import NATIVE, by_simgrid
from retrompi.studies.read.results import axes_of

__all__ = ["About", "about", "networks", "outside_of_runs", "sources"]

Row = Mapping[str, Any]


@dataclass(frozen=True)
class About:
    """Provenance: ``models`` and ``platforms`` are name -> hashes seen, ``sources`` key -> (value, source) of the varied parameters."""

    code_versions: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    """What carried the frames, SimGrid with its version; empty if all runs have the native network."""
    models: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    platforms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fidelities: tuple[str, ...] = ()
    sources: tuple[Mapping[str, str], ...] = ()
    warnings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Model -> what lies outside its calibrated range."""
    cautions: tuple[Caution, ...] = ()
    """The same as cautions."""
    runs: tuple[int, ...] = ()


def _distinct(runs: Sequence[Row], name: str, what: str) -> dict[str, tuple[str, ...]]:
    out: dict[str, dict[str, None]] = {}
    for r in runs:
        out.setdefault(str(r[name]), {})[str(r[what])] = None
    return {k: tuple(v) for k, v in sorted(out.items())}


def networks(runs: Iterable[Row]) -> tuple[str, ...]:
    """The networks of runs (rows of the store) in order, SimGrid's with the version; empty if all are ``native``."""
    named = [f"{r['network']} (SimGrid {r['simgrid_version']})" if by_simgrid(str(r["network"])) else str(r["network"]) for r in runs]
    found = tuple(dict.fromkeys(named))
    return () if found == (NATIVE,) else found


def about(definition: Mapping[str, Any], runs: Mapping[int, Row], curves: Mapping[int, Sequence[Row]]) -> About:
    """The provenance of a study's runs (rows of the store by id)."""
    found = list(runs.values())
    outside = outside_of_runs(found, curves)
    return About(
        code_versions=tuple(dict.fromkeys(str(r["code_version"]) for r in found)),
        networks=networks(found),
        models=_distinct(found, "model", "model_hash"),
        # A platform's hash includes overrides, which the definition shows already, so only the names count here.
        platforms=_distinct(found, "platform", "platform_hash"),
        fidelities=tuple(dict.fromkeys(str(r["fidelity"]) for r in found)),
        sources=tuple(sources(_varied_keys(definition), found)),
        warnings={m: tuple(c.text for c in some) for m, some in outside.items()},
        cautions=tuple(merge_cautions(outside.items())),
        runs=tuple(sorted(runs)),
    )


def _varied_keys(definition: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys([*axes_of(definition), *definition.get("set", {})]))


def sources(keys: Sequence[str], runs: Sequence[Row]) -> list[dict[str, str]]:
    """Rows key, of (model or platform), value, source: the default of each varied parameter, and its source."""
    from retrompi.base.units import format_quantity
    from retrompi.spec import registry

    out: list[dict[str, str]] = []
    models = dict.fromkeys(str(r["model"]) for r in runs)
    platforms = dict.fromkeys(str(r["platform"]) for r in runs)
    for key in keys:
        head, _, name = key.partition(".")
        if head == "platform":
            for p in platforms:
                try:
                    known = registry.platform(p).quantities
                except RetrompiError:
                    continue
                paths = [q for q in known if q == name or (name.startswith("host.") and q.endswith(name.removeprefix("host")))]
                told: dict[tuple[str, str], str] = {}
                for path in paths:
                    q = known[path]
                    told.setdefault((q.source, format_quantity(q.value, q.unit)), path)
                out += [{"key": key, "of": p, "value": value, "source": source} for source, value in told]
        else:
            for m in models:
                if m.partition(":")[0] != head:
                    continue
                try:
                    param = registry.model(m).params().get(name)
                except RetrompiError:
                    continue
                if param is not None:
                    out.append({"key": key, "of": m, "value": str(param.default), "source": param.source})
    return out


def outside_of_runs(runs: Sequence[Row], curves: Mapping[int, Sequence[Row]]) -> dict[str, list[Caution]]:
    """Model -> what lies outside its calibrated range; models with nothing outside are left out."""
    asked: dict[tuple[str, str, tuple[str, ...]], tuple[Row, set[int], set[int]]] = {}
    for r in runs:
        key = (str(r["model"]), str(r["platform"]), tuple(sorted(r.get("overrides") or {})))
        _, sizes, ranks = asked.setdefault(key, (r, set(), set()))
        sizes.update(int(p["size_B"]) for p in curves.get(r["id"], ()))
        ranks.update([r["ranks"]] if r.get("ranks") else [])
    found: dict[str, dict[Caution, None]] = {}
    for (model, platform, _), (row, sizes, ranks) in asked.items():
        # Of several numbers of ranks, the smallest and the largest suffice.
        for n in dict.fromkeys((min(ranks, default=None), max(ranks, default=None))):
            try:
                some = calibration(model, platform, sizes=sorted(sizes), ranks=n, sets=row.get("overrides") or {})
            except RetrompiError as error:
                told = f"cannot be told: {str(error).partition('; ')[0]}"  # not the list of valid names
                some = [Caution("outside-calibration", told, minor=True)]
            for one in some:
                found.setdefault(model, {})[one] = None
    return {m: list(some) for m, some in sorted(found.items())}
