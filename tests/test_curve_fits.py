"""Fitting mechanisms to measured curves: what a fit sees, what it finds again, where it writes, and what it says about what it missed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import log
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from cases import for_each
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from refusals import agrees, refused

from retrompi.base import toml as toml_text
from retrompi.base import units
from retrompi.base.errors import InputError, UsageError
from retrompi.papers import markdown
from retrompi.papers.fit import curve_fits, free_values
from retrompi.papers.fit.optimise import OptimiserSettings
from retrompi.papers.judging import curve_verdicts
from retrompi.papers.statements import curves
from retrompi.papers.statements.curves import FitPlan
from retrompi.papers.statements.paper import find_paper, working_with
from retrompi.spec import registry
from retrompi.spec.machine import machines
from retrompi.store import open_store

ROOT = Path(__file__).resolve().parents[1]
LAYERS = ("turner-chen-2002", "gropp-lusk-1994", "woodall-2004", "turner-2003")
QUICK = OptimiserSettings(starts=1, steps=16, step=0.02, scale=0.3, linear=0.5, finer=(0.005, 0.1))
MODEL, PLATFORM = "sockets:netpipe", "p4-1800*2@ge-ga620"
SIZES = (1, 64, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)
FREE = ("p4-1800.tcp_segment", "ge-ga620.card.nic_latency")


# -- the shipped ones -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", LAYERS)
def test_every_shipped_fit_has_owners_ranges_and_files_and_sees_the_layers_below_alone(key: str) -> None:
    paper = find_paper(key)
    assert curves.inspect_curves(paper) == []
    assert curves.fits_of(paper)
    for plan in curves.fits_of(paper):
        for path in plan.free:
            owner = free_values.owner(path)
            free = free_values.span(path, owner)
            assert 0 < free.low < free.high
            assert free_values.place(path, owner, None, plan.name).file.is_file()
        for name in plan.curves:
            assert curves.by_name(name, curves.of(paper)).model in ("sockets:netpipe", "gm", "euih", "vapi")


def test_simulated_layers_are_near_the_published_ones(tmp_path: Path) -> None:
    from retrompi.papers import run_papers

    studies = run_papers(LAYERS, open_store(tmp_path / "s.db"))
    found = {v.id: v for study in studies for v in study.verdicts if v.kind == "curve"}
    assert {i.partition(":")[2] for i in found} >= {"ga620", "trendnet", "gm", "ds20", "teg", "euih", "ip-gm", "gigabit-2003", "vapi"}
    # IP over GM between TEG's PCs has missed the criterion since frames queue, and a new fit does not help (docs/networks.md).
    medians = [v.observed for i, v in found.items() if v.use == "calibrate" and i != "woodall-2004:teg"]
    assert max(map(float, medians)) <= 5.0  # type: ignore[arg-type]
    # NetPIPE's sizes that are not aligned, a driver that is unsteady, timers of a card, a second packet: mechanisms that are not simulated.
    assert [i for i, v in found.items() if v.verdict == "fail" and v.use == "calibrate"] == [
        "turner-chen-2002:trendnet",
        "turner-chen-2002:gm",
        "woodall-2004:teg",
        "turner-2003:gigabit-2003",
        "turner-2003:vapi",
    ]
    page = (ROOT / "docs" / "transfer.md").read_text(encoding="utf-8")
    for line in markdown.layer_table(studies).splitlines()[2:]:
        title, machines, points, error = (cell.strip() for cell in line.split("|")[1:5])
        (shown,) = [known for known in page.splitlines() if known.startswith(f"| {title} | {machines} | {points} |")]
        assert float(shown.split("|")[4].strip(" %")) == pytest.approx(float(error.strip("%")), abs=0.3), (
            "run: python -m retrompi.papers.markdown"
        )


def test_points_are_those_of_the_drawing() -> None:
    (euih, *_) = curves.of(find_paper("gropp-lusk-1994"))
    assert (euih.points[0].size, euih.points[0].time, len(euih.points)) == (0, pytest.approx(30.4e-6), 114)
    ga620 = curves.by_name("ga620", curves.of(find_paper("turner-chen-2002")))
    at = {p.size: p for p in ga620.points}
    assert at[8388608].time == pytest.approx(8388608 * 8 / 566.8e6)
    assert at[4].error == pytest.approx(1)


def test_a_fit_keeps_a_card_within_the_bus_of_its_host() -> None:
    owners = {path: free_values.owner(path) for path in ("ip-gm-pci64a.card.nic_rate", "ip-gm-pci64a.card.nic_rate_in")}
    bus = machines.host("p4-1800").quantities["bus_rate"]
    given = {"ip-gm-pci64a.card.nic_rate": "60 MB/s", "ip-gm-pci64a.card.nic_rate_in": "132 MB/s"}
    found = free_values.limit_cards(owners, given, ["p4-1800*2@ip-gm-pci64a"])
    assert found == given | {"ip-gm-pci64a.card.nic_rate_in": bus.text}


# -- a paper of one's own -----------------------------------------------------------------------------------------------------------


def made(folder: Path, times: Mapping[int, float], *, more: str = "", fit: str = "", claims: str = "", checks: str = "") -> Path:
    """A paper in ``folder`` with one curve (size -> us) and a fit of `FREE` to it."""
    folder.mkdir(exist_ok=True)
    rows = "".join(f"{size},{time!r},{time * 0.01!r}\n" for size, time in times.items())
    (folder / "points.csv").write_text(f"bytes,time_us,plus_minus\n{rows}")
    free = ", ".join(f'"{f}"' for f in FREE)
    (folder / "paper.toml").write_text(
        'title = "Mine"\nauthors = "I"\n[[curve]]\nname = "one"\ntitle = "One"\nfile = "points.csv"\n'
        f'model = "{MODEL}"\nplatform = "{PLATFORM}"\n'
        f'use = "calibrate"\n{more}\n[[fit]]\nname = "machines"\nfree = [{free}]\n' + (fit or 'curves = ["one"]\n'))
    if claims:
        (folder / "claims.csv").write_text(claims)
        (folder / "checks.toml").write_text(checks)
    return folder


def of_nature(**values: str) -> dict[int, float]:
    """Size -> one-way time (us) of a machine with these values of `FREE` instead of its own."""
    sets = [o for key, text in zip(FREE, values.values(), strict=True) for o in free_values.options(free_values.owner(key), PLATFORM, text)]
    plain = curves.PaperCurve("c", "c", MODEL, PLATFORM)
    return {s: t * 1e6 for s, t in curves.simulate_times(plain, SIZES, sets).items()}


def fitted(folder: Path, **options: Any) -> curve_fits.CurveFit:
    with working_with(str(folder)) as (paper,):
        (plan,) = curves.fits_of(paper)
        return curve_fits.fit(plan, curve_fits.evidence_of(paper), folder=folder, search=options.pop("search", QUICK), **options)


def values_of(found: curve_fits.CurveFit) -> dict[str, float]:
    return {v["parameter"]: units.parse(v["value"], free_values.span(v["parameter"], free_values.owner(v["parameter"])).unit)
            for v in found.values}


@settings(max_examples=3, phases=[Phase.generate], derandomize=True)
@given(shares=st.tuples(st.floats(0.2, 0.8), st.floats(0.2, 0.8)))
def test_a_curve_of_known_machines_is_fitted_back_to_them(tmp_path_factory: pytest.TempPathFactory, shares: tuple[float, float]) -> None:
    spans = [free_values.span(key, free_values.owner(key)) for key in FREE]
    nature = of_nature(**{f"v{i}": free_values.number_text(f, x) for i, (f, x) in enumerate(zip(spans, shares, strict=True))})
    found = fitted(made(tmp_path_factory.mktemp("paper") / "mine", nature), search=replace(QUICK, starts=2))
    for f, share in zip(spans, shares, strict=True):
        # The costs of segments overlap, so that a share of a range is found back more coarsely than the curve.
        near = log(values_of(found)[f.path] / f.low) / log(f.high / f.low)
        assert near == pytest.approx(share, abs=0.08), (f.path, f.at(share), found.values)
    (row,) = found.rows
    assert row["median"] < 0.001
    assert found.missed == []


def test_held_out_points_never_touch_the_fit_and_are_judged_apart(tmp_path: Path) -> None:
    nature = of_nature(a="8 us", b="12 us")
    plain = fitted(made(tmp_path / "plain", nature, more='hold_out = "alternate"'))
    sizes = sorted(nature)
    wild = {s: t * (3.0 if s in sizes[1::2] else 1.0) for s, t in nature.items()}
    other = fitted(made(tmp_path / "wild", wild, more='hold_out = "alternate"'))
    assert [v["value"] for v in plain.values] == [v["value"] for v in other.values]
    assert plain.evaluations == other.evaluations
    seen, held = other.rows
    assert (seen["verdict"], seen["points"], held["verdict"], held["points"]) == ("pass", 5, "fail", 5)
    assert other.missed == []  # what was held out is no miss of the fit
    assert plain.rows[1]["verdict"] == "pass"


def test_a_users_fit_of_the_packages_machines_is_in_force_while_the_paper_is_worked_with(tmp_path: Path) -> None:
    folder = made(tmp_path / "mine", of_nature(a="8 us", b="12 us"))
    before = {p: p.read_bytes() for p in (machines.host("p4-1800").path.parent).glob("*.fit.toml")}
    found = fitted(folder)
    assert found.write() == [folder / "fit.toml"]
    assert {p: p.read_bytes() for p in before} == before
    told = {v["parameter"]: v["value"] for v in found.values}
    usual = machines.host("p4-1800").quantities["tcp_segment"]
    with working_with(str(folder)):
        now = machines.host("p4-1800").quantities["tcp_segment"]
        assert (now.text, now.source) == (told["p4-1800.tcp_segment"], "fit:mine/fit.toml")
        card = machines.network("ge-ga620").quantities["card.nic_latency"]
        assert card.text == told["ge-ga620.card.nic_latency"]
        assert registry.platform(PLATFORM).quantities["n1.tcp_segment"].text == now.text
    assert machines.host("p4-1800").quantities["tcp_segment"] == usual
    assert registry.platform(PLATFORM).quantities["n1.tcp_segment"].text == usual.text


def test_values_of_ones_own_machines_are_written_beside_them(retrompi: Callable[..., Any], tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(curve_fits.fit, "__kwdefaults__", {**curve_fits.fit.__kwdefaults__, "search": QUICK})
    folder = made(tmp_path / "mine", of_nature(a="8 us", b="12 us"))
    hosts = folder / "platforms" / "hosts"
    hosts.mkdir(parents=True)
    (hosts / "my-pc.toml").write_text(
        'title = "My PC"\nyears = "2001"\nsummary = "in my room"\nlike = "p4-1800"\n'
        'tcp_segment = { value = "2 us", source = "fit:my-pc.fit.toml", low = "0.5 us", high = "12 us" }\n'
    )
    file = folder / "paper.toml"
    file.write_text(file.read_text().replace("p4-1800", "my-pc"))
    ended = retrompi("calibrate", str(folder))
    assert ended.code == 0, ended.err
    (own,) = toml_text.read(hosts / "my-pc.fit.toml", "fit")[1].values()
    assert list(own["values"]) == ["tcp_segment"]
    (theirs,) = toml_text.read(folder / "fit.toml", "fit")[1].values()
    assert list(theirs["values"]) == ["ge-ga620.card.nic_latency"]
    with working_with(str(folder)):
        assert machines.host("my-pc").quantities["tcp_segment"].text == own["values"]["tcp_segment"]


CLAIMS = ("id,system,platform,configuration,observable,value,unit,low,high,kind,use\n"
          "MY-01,TCP,pcs,,latency,{value},us,{value},{value},quant,{use}\n")
CHECKS = '[[MY-01]]\nkind = "curve"\ncurve = "one"\nmetric = "time_at"\nsize = "1 B"\nnear = true\nmodels = ["sockets:netpipe"]\n'


def test_a_fit_sees_claims_of_use_calibrate_and_says_which_it_missed(tmp_path: Path) -> None:
    nature = of_nature(a="8 us", b="12 us")
    fit = 'claims = ["MY-01"]\n'
    near = CLAIMS.format(value=nature[1] * 1.02, use="calibrate")
    assert fitted(made(tmp_path / "near", nature, fit=fit, claims=near, checks=CHECKS)).missed == []
    far = CLAIMS.format(value=nature[1] * 30, use="calibrate")
    assert fitted(made(tmp_path / "far", nature, fit=fit, claims=far, checks=CHECKS)).missed == ["MY-01"]
    held = CLAIMS.format(value=nature[1], use="validate")
    with refused(InputError, "held-out | paper.toml | MY-01"):
        fitted(made(tmp_path / "held", nature, fit=fit, claims=held, checks=CHECKS))


def test_a_held_out_claim_changes_no_fitted_value(tmp_path: Path) -> None:
    nature = of_nature(a="8 us", b="12 us")
    found = [
        fitted(made(tmp_path / str(i), nature, claims=CLAIMS.format(value=value, use="validate"), checks=CHECKS))
        for i, value in enumerate((nature[1], 1e6))
    ]
    assert found[0].values == found[1].values
    assert [r["evidence"] for r in found[1].rows] == ["one"]


@for_each(
    "free, wanted",
    [
        ("p4-1900.interrupt", "unknown-name | paper.toml:11 | 'p4-1900' | p4-1800"),
        ("p4-1800.interupt", "unknown-parameter | paper.toml:11 | interrupt"),
        ("p4-1800.clock", "bad-source | paper.toml:11"),
        ("alpha-ds20.interrupt", "unused-option | paper.toml:11 | alpha-ds20.interrupt"),
        ("interrupt", "bad-syntax | paper.toml:11 | HOST.key"),
    ],
)
def test_what_cannot_be_free_is_named_with_its_line(tmp_path: Path, free: str, wanted: str) -> None:
    folder = made(tmp_path / "mine", of_nature(a="8 us", b="12 us"))
    file = folder / "paper.toml"
    file.write_text(file.read_text().replace(FREE[0], free))
    with refused(InputError, wanted):
        fitted(folder)
    with working_with(str(folder)) as (paper,):
        (problem,) = curve_fits.inspect_fits(paper)
        agrees(problem, wanted)


def test_the_command(retrompi: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curve_fits.fit, "__kwdefaults__", {**curve_fits.fit.__kwdefaults__, "search": QUICK})
    folder = made(tmp_path / "mine", of_nature(a="8 us", b="12 us"))
    ended = retrompi("calibrate", str(folder), "--dry-run")
    assert ended.code == 0, ended.err
    assert "every curve and claim that a fit saw is met" in ended.out
    assert not (folder / "fit.toml").exists()
    rows = json.loads(retrompi("calibrate", str(folder), "--json").out)
    assert {r["fit"] for r in rows} == {"machines"}
    assert [r["parameter"] for r in rows[:2]] == list(FREE)
    assert (folder / "fit.toml").is_file()
    ended = retrompi("validate", "--paper", str(folder), "--json")
    assert ended.code == 0, ended.err
    judged = json.loads(ended.out)
    assert [(v["id"], v["verdict"]) for v in judged] == [("mine:one", "pass")]
    wild = made(tmp_path / "wild", {s: 100.0 + 400 * (i % 2) for i, s in enumerate(SIZES)})
    missed = retrompi("calibrate", str(wild), "--dry-run")
    assert (missed.code, "missed: one (machines)" in missed.out) == (1, True)


def test_what_the_command_refuses(retrompi: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "paper.toml").write_text('title = "Bare"\nauthors = "I"\n')
    for words, wanted in (
        (("gropp-lusk-1994", "--only-fit", "sp2"), "unknown-name | 'sp2' | sp1"),
        (("gropp-lusk-1994", "--evaluations", "3"), "unused-option | --evaluations"),
        (("gropp-lusk-1994", "-p", "nt-cluster"), "unused-option | --platform"),
        (("wmpi", "--only-fit", "sp1"), "unused-option | --only-fit"),
        ((str(tmp_path / "bare"),), "no-claims | [[fit]]"),
    ):
        ended = retrompi("calibrate", *words)
        assert ended.code == 2
        agrees(ended, wanted)


def test_the_errors_of_a_curve_are_those_of_its_points() -> None:
    (euih, *_) = curves.of(find_paper("gropp-lusk-1994"))
    got = curves.simulate_times(euih, euih.grid)
    found = curve_verdicts.errors(euih, euih.points, got)
    assert found is not None
    away = [abs(got[p.size] / p.time - 1) for p in euih.points if p.error <= 0.05]
    assert (found.points, found.median, found.largest) == (len(away), pytest.approx(median(away)), pytest.approx(max(away)))


def test_a_plan_without_its_curves_is_refused() -> None:
    (euih, *_) = curves.of(find_paper("gropp-lusk-1994"))
    empty = curve_fits.PaperEvidence("k", {euih.name: euih})
    with refused(InputError, "held-out | GL94-002"):
        curve_fits.fit(FitPlan("f", "f", ("euih.rate",), (), ("GL94-002",)), empty)
    with refused(UsageError, "unknown-name | 'eui'"):
        curves.by_name("eui", [euih])
