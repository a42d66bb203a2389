"""Evidence of a model's own: ``evidence.toml`` beside it, for runtimes that none of the papers has measured.

    [[claim]]
    id = "POST-01"
    observable = "start-up latency on one machine"
    value = "220"
    unit = "microseconds"
    low = 210
    high = 230
    use = "calibrate"                  # or validate: a fit never sees it
    source = "laboratory notebook, page 12"
    check = { kind = "range", mode = "shared", metric = "startup" }

Units and checks are those of ``validate/papers/README.md``. A claim is judged by the model's own PingPong curves on a platform. Measured
curves are ``[[curve]]`` tables as in a paper's folder (`retrompi.papers.statements.curves`), with files beside the model; their model is
this one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrompi.base import toml as toml_text
from retrompi.base import units
from retrompi.base.errors import InputError, UsageError, nearest
from retrompi.base.names import check_name
from retrompi.papers.judging import curve_checks, curve_verdicts
from retrompi.papers.judging.verdicts import EVALUATORS, Verdict, judge
from retrompi.papers.statements import curves
from retrompi.papers.statements.claims import KINDS, USES, Checks, Claim, load
from retrompi.papers.statements.curves import PaperCurve
from retrompi.sim.resolved import MODES
from retrompi.spec import registry
from retrompi.spec.declare.sources import wrong_source
from retrompi.spec.model import RuntimeModel
from retrompi.spec.question import Question, pingpong
from retrompi.store.lookup import answer
from retrompi.traces.generate import DEFAULT_SIZES

if TYPE_CHECKING:
    from retrompi.store.database import Store

__all__ = ["Evidence", "evidence", "facts_of_curves", "judge_model", "own_curves", "own_for_fit", "sizes_asked"]

Evidence = tuple[list[Claim], dict[str, tuple[Mapping[str, Any], ...]]]
"""A model's own claims and their checks."""
TimesOf = Callable[[PaperCurve, Iterable[int]], Mapping[int, float]]
"""What simulates a curve at sizes: size -> time, s."""

KEYS = ("id", "observable", "value", "unit", "low", "high", "use", "kind", "source", "note", "check")


def evidence(cls: type[RuntimeModel]) -> Evidence:
    """The claims and checks of the model's ``evidence.toml``; empty without a file. Raises InputError for an invalid one."""
    path = cls.folder() / "evidence.toml"
    if not path.is_file():
        return [], {}
    text, data = toml_text.read(path, "evidence")
    if unknown := [k for k in data if k not in ("claim", "curve")]:
        raise InputError(f"unknown key '{unknown[0]}'; valid: claim, curve", path, code="unknown-key")
    with toml_text.taken_apart("evidence", path):
        claims, checks = _claims(cls, path, data)
    own = own_curves(cls, cls.name, "nt-pair")
    for claim in claims:
        line = next((n for n, line in enumerate(text.splitlines(), 1) if f'"{claim.id}"' in line), None)
        _check_judgeable(claim, checks, own, path, line)
    return claims, checks


def own_curves(cls: type[RuntimeModel], model: str, platform: str) -> tuple[PaperCurve, ...]:
    """The measured curves of the model's ``evidence.toml``, on ``platform`` unless they name another; () without a file.

    ``model``: the name or folder by which the model is found. Raises InputError for the first wrong one.
    """
    path = cls.folder() / "evidence.toml"
    if not path.is_file():
        return ()
    found, _, problems = curves.read({"curve": toml_text.read(path, "evidence")[1].get("curve", [])}, path, model=model, platform=platform)
    for problem in problems:
        raise problem
    return found


def facts_of_curves(own: Sequence[PaperCurve], sizes: Mapping[str, Iterable[int]], times: TimesOf) -> dict[str, Any]:
    """The facts of curves: each simulated by ``times`` at its grid and at the further ``sizes`` that checks ask for."""
    told = {c.name: curve_checks.facts_of(c.grid, times(c, {*c.grid, *sizes.get(c.name, ())})) for c in own}
    return {"curves": told, "layers_below": {c.name: c.layer_below for c in own}} if own else {}


_SIZES = (0, *(1 << n for n in range(24)))


def _check_judgeable(claim: Claim, checks: Checks, own: Sequence[PaperCurve], path: Path, line: int | None) -> None:
    """Judges the claim by the curve of an ideal network, so that a check that cannot be judged is found before anything is simulated."""
    (check,) = checks[claim.id]
    modes = {str(check.get("mode", mode)) for mode in MODES}
    models = [str(m) for m in check["models"]]
    points = [{"model": m, "mode": mode, "size_B": n, "time_us": 50 + n / 10} for m in models for mode in modes for n in _SIZES]
    below = {c.name: c.layer_below for c in own}
    try:
        facts = curve_checks.ideal({c.name: c.grid for c in own}, curve_checks.sizes_asked([claim], checks, below), below) if own else {}
        judge([claim], points, facts, entries=checks)
    except InputError as error:
        if error.path is not None:
            raise
        raise InputError(error.message, path, line, code=error.code) from None


def _claims(cls: type[RuntimeModel], path: Path, data: Mapping[str, Any]) -> Evidence:
    taken = {c.id for c in load()}
    claims: list[Claim] = []
    checks: dict[str, tuple[Mapping[str, Any], ...]] = {}
    for t in data.get("claim", []):
        name = str(t.get("id", "?"))
        if problem := _name_error(name):
            raise InputError(problem, path, code="bad-name")
        unknown = [k for k in t if k not in KEYS]
        missing = [k for k in ("id", "observable", "value", "unit", "low", "high", "use", "source", "check") if k not in t]
        if unknown or missing:
            raise InputError(
                f"claim '{name}': {'unknown' if unknown else 'missing'} key '{(unknown or missing)[0]}'", path, code="unknown-key"
            )
        if name in taken:
            raise InputError(f"claim '{name}' appears twice, or in the papers' reference", path, code="duplicate-name")
        taken.add(name)
        for key, valid, default in (("use", USES, ""), ("kind", KINDS, "quant")):
            if t.get(key, default) not in valid:
                raise InputError(f"claim '{name}': {key} '{t.get(key)}'{nearest(str(t.get(key)), valid)}", path, code="unknown-name")
        check = {"models": [cls.name], **t["check"]}
        if check.get("kind") not in EVALUATORS:
            raise InputError(
                f"claim '{name}': no kind of check '{check.get('kind')}'{nearest(str(check.get('kind')), EVALUATORS)}",
                path,
                code="unknown-name",
            )
        claims.append(
            Claim(
                id=name, system=cls.title, platform="", configuration="", observable=t["observable"], value=str(t["value"]), unit=t["unit"],
                low=float(t["low"]), high=float(t["high"]), kind=t.get("kind", "quant"), paper=str(t["source"]), section="",
                also_in="", note=str(t.get("note", "")), use=t["use"],
            )
        )
        checks[name] = (check,)
        source = str(t["source"])
        if source.startswith("paper:") and (problem := wrong_source(source)):
            raise InputError(f"claim '{name}': the source '{source}' {problem}", path, code="bad-source")
    return claims, checks


def _name_error(name: str) -> str:
    try:
        check_name("a claim", name, 40)
    except UsageError as error:
        return str(error)
    return ""


def own_for_fit(cls: type[RuntimeModel]) -> Evidence:
    """The part of a model's own evidence available to a calibration: claims marked ``calibrate`` and their checks."""
    claims, checks = evidence(cls)
    seen = [c for c in claims if c.use == "calibrate"]
    return seen, {c.id: checks[c.id] for c in seen}


def sizes_asked(checks: Checks) -> list[int]:
    """The message sizes of the PingPong by which a model is judged: the usual ones, and those that its checks name."""
    named = [c["size"] for entries in checks.values() for c in entries if "size" in c and c.get("kind") != "curve"]
    return sorted({*DEFAULT_SIZES, *(size for one in named for size in units.parse_sizes(one))})


def judge_model(model: str, platform: str, store: Store, *, fresh: bool = False) -> list[Verdict]:
    """Judges a model's own evidence by its PingPong and its curves on ``platform`` and stores the verdicts; [] without evidence."""
    cls = registry.model(model)
    claims, checks = evidence(cls)
    own = own_curves(cls, model, platform)
    if not claims and not own:
        return []
    points, runs = [], []

    def times(curve: PaperCurve, sizes: Iterable[int]) -> dict[int, float]:
        got = answer(store, curves.question(curve, sizes), fresh=fresh)
        runs.append(got.run_id)
        return {int(r["size_B"]): float(r["time_us"]) * 1e-6 for r in got.rows}

    plain = [c for entries in checks.values() for c in entries if c["kind"] != "curve"]
    for mode in (sorted({str(c["mode"]) for c in plain if "mode" in c}) or list(MODES)) if plain else ():
        got = answer(store, Question(model, platform, pingpong(sizes_asked(checks)), mode), fresh=fresh)
        runs.append(got.run_id)
        points += [{"model": cls.name, "platform": platform, "mode": mode, **row} for row in got.rows]
    facts = facts_of_curves(own, curve_checks.sizes_asked(claims, checks, {c.name: c.layer_below for c in own}), times)
    verdicts = [*judge(claims, points, facts, entries=checks), *curve_verdicts.judge(cls.name, own, facts)]
    store.add_verdicts(f"evidence of {cls.name}", verdicts, run_ids=runs)
    return verdicts
