"""Posteriors: what they read of the published numbers, the same draws for a seed, and the contract of every file that ships."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import for_each
from conftest import Outcome
from refusals import agrees, refused

from retrompi.base import paths
from retrompi.base.errors import InputError
from retrompi.inference import design, posterior, problem
from retrompi.inference.design import Training, sobol
from retrompi.inference.problem import Problem, ProblemPart, StatedNumber
from retrompi.papers.statements import claims, curves
from retrompi.papers.statements.paper import find_paper
from retrompi.spec import registry

pytest.importorskip("emcee")

FILES = sorted([*paths.models_dir().glob("*/posterior*.npz"), *paths.papers_dir().glob("*/posterior-*.npz")])


@cache
def read(file: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    with np.load(file, allow_pickle=False) as found:
        about: dict[str, Any] = json.loads(str(found["about"]))
        return dict(zip(map(str, found["names"]), found["draws"], strict=True)), about


@cache
def problems(of: str, platform: str) -> list[Problem]:
    return [problem.of_model(of, platform)] if platform else problem.of_paper(find_paper(of))


@cache
def nemesis() -> Problem:
    return problem.of_model("nemesis", "abe")


@cache
def small(seed: int = 1) -> posterior.Posterior:
    return posterior.posterior(nemesis(), seed=seed, simulations=96)


def reading(*limits: tuple[float, float]) -> Problem:
    """Nemesis where its latency at 0 B is published as these, ns."""
    (part,) = nemesis().parts
    (number,) = part.observables
    assert isinstance(number, StatedNumber)
    return replace(nemesis(), parts=(replace(part, observables=(replace(number, readings=limits),)),))


# --- what is read --------------------------------------------------------------------------------------------------------------------


def test_the_calibrations_of_a_platform_are_one_problem_with_a_discrepancy_for_each_model() -> None:
    joint = problem.of_model("wmpi", "nt-pair")
    assert joint.models == ("hpvm", "winmpich", "wmpi")
    assert [m.name for m in joint.members] == list(joint.models)
    assert joint.paths == problem.of_model("hpvm", "nt-pair").paths
    used = [{path for i in m.parts for path in joint.parts[i].paths} for m in joint.members]
    assert {"nt-pair.host.nic_rate", "nt-pair.workstation.copy_mem"} <= set.intersection(*used)
    fitted = {m.name: set(m.fitted) for m in joint.members}
    assert fitted["hpvm"] == {"hpvm.network_calls", "nt-pair.host.nic_rate"}
    assert fitted["wmpi"] == {"wmpi.daemon", "wmpi.library", "wmpi.network_packet"}


def test_a_rival_variant_is_in_the_place_of_its_base() -> None:
    joint = problem.of_model("wmpi:absorbed", "nt-pair")
    assert [m.name for m in joint.members] == ["hpvm", "winmpich", "wmpi:absorbed"]
    assert joint.written == ("wmpi:absorbed",)
    assert joint.members[-1].file == paths.models_dir() / "wmpi" / "posterior-absorbed.npz"


def test_the_fits_of_a_paper_that_share_a_host_are_one_problem() -> None:
    found = problem.of_paper(find_paper("turner-chen-2002"))
    assert [[m.name for m in p.members] for p in found] == [
        ["turner2002-ds20"], ["turner2002-pc", "turner2002-gm", "turner2002-ipgm"],
    ]
    (sp1,) = problem.of_paper(find_paper("gropp-lusk-1994"))
    assert [m.fitted for m in sp1.members if m.name == "library"] == [("_mpich1.library",)]
    held = {p.size for c in curves.of(find_paper("turner-chen-2002")) for p in c.held_out}
    assert not held & {o.size for p in found for o in p.observables if not isinstance(o, StatedNumber) and o.curve in ("ga620", "gm")}


def test_a_number_stands_for_its_printed_digits() -> None:
    claim = claims.find("KB-01")
    assert problem.printed_range(claim) == (239.5, 240.5)
    assert problem.printed_range(replace(claim, value="0.91 MB/s", low=0.91, high=0.91)) == pytest.approx((0.905, 0.915))
    assert problem.printed_range(claims.find("BF-SM-01")) == (165, 185)
    with pytest.raises(ValueError, match="no low"):
        problem.printed_range(replace(claim, low=None))


def test_what_is_said_of_one_number_are_readings_of_it() -> None:
    joint = problem.of_model("wmpi", "nt-pair")
    by_name = {o.name: o for o in joint.observables if isinstance(o, StatedNumber)}
    assert "BF-SM-09" not in by_name
    assert by_name["BF-SM-12a"].stated_by == ("BF-SM-12a", "BF-SM-09")
    assert by_name["BF-SM-12a"].readings == ((2.5, 4.5),)
    contradicted = by_name["BF-DM-10"]
    assert [c for c, _ in claims.excluded_readings("BF-DM-10")] == [claims.find("BF-DM-09")]
    assert np.allclose(contradicted.readings, ((80, 100), (850, 950)))
    said = joint.data.statements
    at = joint.observables.index(contradicted)
    assert [s.index for s in said].count(at) == 2


def test_what_is_held_out_changes_nothing_that_a_posterior_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    before = problem.of_model("wmpi", "nt-pair")
    poisoned = [replace(c, low=1e9, high=2e9, value="1e9", unit="s") if c.use == "validate" else c for c in claims.load()]
    monkeypatch.setattr(claims, "load", lambda path=None: list(poisoned))
    after = problem.of_model("wmpi", "nt-pair")
    assert after.data == before.data
    assert [part.key for part in after.parts] == [part.key for part in before.parts]


def test_no_held_out_claim_states_a_number_that_is_read() -> None:
    stated = {check["same"]: c.id for c in claims.load() for check in claims.checks().get(c.id, ()) if "same" in check}
    assert stated
    for one, other in stated.items():
        assert claims.find(one).use == "calibrate"
        assert claims.find(other).use in ("calibrate", "exclude")


# --- posteriors ----------------------------------------------------------------------------------------------------------------------


def test_a_seed_gives_the_same_draws_and_another_seed_others() -> None:
    again = posterior.posterior(nemesis(), seed=1, simulations=96)
    assert np.array_equal(again.u, small().u)
    assert np.array_equal(again.sigma, small().sigma)
    assert again.diagnostics == small().diagnostics
    assert not np.array_equal(posterior.posterior(nemesis(), seed=2, simulations=96).u, again.u)


def test_a_contradiction_widens_and_a_repetition_does_not_narrow() -> None:
    at = nemesis().paths.index("nemesis.library")
    plain, contradicted, repeated = (
        posterior.posterior(reading(*limits), seed=1, simulations=96)
        for limits in (((239.5, 240.5),), ((199.5, 200.5), (299.5, 300.5)), ((239.5, 240.5), (239.5, 240.5)))
    )
    assert contradicted.u[:, at].std() > 1.1 * plain.u[:, at].std()
    assert repeated.u[:, at].std() == pytest.approx(plain.u[:, at].std(), rel=0.1)
    # Both numbers stay possible; nothing is gained in the middle that nobody stated.
    trained = Training(nemesis().parts[0])
    told = np.exp(trained.at(contradicted.u[::25])[:, 0])
    low, middle, high = ((told < 225).mean(), ((told > 235) & (told < 265)).mean(), (told > 275).mean())
    assert low > 0.15
    assert high > 0.15
    assert middle < low + high


def test_training_runs_are_kept_and_a_damaged_file_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    (part,) = nemesis().parts
    points = sobol(len(part.paths), 5, 7)
    first = Training(part).at(points)
    with monkeypatch.context() as patched:
        patched.setattr(ProblemPart, "simulate", lambda *_: pytest.fail("it is known"))
        assert np.array_equal(Training(part).at(points), first)
    Training(part).file.write_bytes(b"PK\x03\x04 damaged")
    assert np.array_equal(Training(part).at(points), first)


def test_a_run_that_does_not_complete_has_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    (part,) = nemesis().parts
    monkeypatch.setattr(problem, "_try_look", lambda *_: None)
    assert np.isnan(part.simulate(part.nominal)).all()


def test_written_draws_are_of_the_priors(tmp_path: Path) -> None:
    (member,) = nemesis().members
    moved = replace(small(), problem=replace(nemesis(), members=(replace(member, file=tmp_path / "posterior.npz"),)))
    (file,) = moved.write()
    columns, about = read(file)
    assert list(columns) == ["discrepancy", *nemesis().paths]
    assert about["of"] == "nemesis"
    assert about["claims"] == ["KB-01"]
    away = replace(moved, problem=replace(moved.problem, members=(replace(member, file=tmp_path / "no" / "posterior.npz"),)))
    with refused(InputError, "unwritable-file"):
        away.write()


def test_the_command_says_what_is_left(retrompi: Callable[..., Outcome]) -> None:
    told = retrompi("posterior", "find", "nemesis", "-p", "abe", "--simulations", "96", "--dry-run", "--json")
    rows = json.loads(told.out)
    assert told.code == (0 if small().converged else 1)
    assert rows[0]["parameter"] == "nemesis.library"
    assert rows[0]["prior_low"] < rows[0]["low"] < rows[0]["median"] < rows[0]["high"] < rows[0]["prior_high"]
    assert rows[0]["left"] < 0.8
    for arguments, wanted in (
        (("baker-fox",), "no-claims | baker-fox"),
        (("woodall-2004", "-p", "abe"), "unused-option | woodall-2004"),
        (("gm",), "no-claims | gm"),
    ):
        agrees(retrompi("posterior", "find", *arguments), wanted)


def test_a_posterior_that_did_not_converge_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = replace(small(), diagnostics={**small().diagnostics, "r_hat": 1.4})
    assert not bad.converged
    assert "NOT CONVERGED" in posterior.summary(bad)
    assert "1.4" in posterior.summary(bad)


def test_the_design_fills_the_cube() -> None:
    points = sobol(9, 64, 3)
    assert points.shape == (64, 9)
    assert np.array_equal(points, sobol(9, 64, 3))
    assert all(len({int(x * 16) for x in column}) == 16 for column in points.T)
    assert design.WORKERS == 2


# --- what ships ----------------------------------------------------------------------------------------------------------------------


@for_each("file", FILES)
def test_every_shipped_posterior(file: Path) -> None:
    columns, about = read(file)
    (of,) = (p for p in problems(about["of"], about["platform"]) if about["member"] in [m.name for m in p.members])
    member = next(m for m in of.members if m.name == about["member"])
    assert member.file == file
    priors = {p.path: p for i in member.parts for p in of.parts[i].priors}
    assert list(columns) == ["discrepancy", *sorted(priors), *(["rough"] if about.get("rough") else [])]
    assert about["priors"] == {path: [p.low, p.high, p.log, p.unit] for path, p in priors.items()}
    assert all(len(values) == posterior.DRAWS and np.isfinite(values).all() for values in columns.values())
    for path, p in priors.items():
        slack = 1e-6 * max(abs(p.low), abs(p.high))
        assert columns[path].min() >= p.low - slack, path
        assert columns[path].max() <= p.high + slack, path
        shares = np.array([p.share(float(v)) for v in columns[path]])
        if not p.whole:
            assert about["seen"][path] == pytest.approx(shares.var() * 12, abs=2e-3), path
    assert (columns["discrepancy"] > 0).all()
    # Nothing that is held out was read.
    assert {claims.find(i).use for i in about["claims"]} <= {"calibrate", "exclude"}
    assert set(about["own_claims"]) == set(member.claims)
    assert set(about["own_claims"]) <= set(about["claims"])
    if about["curves"]:
        known = {c.name: c for c in curves.of(find_paper(about["of"]))}
        assert {known[name].use for name in about["curves"]} == {"calibrate"}
    assert set(member.fitted) == set(about["fitted"])
    assert posterior.has_converged(about["diagnostics"]) == about["converged"]
    assert about["diagnostics"]["incomplete_draws"] <= 0.05
    assert about["model_hash"] == {name: registry.model(name).code_hash() for name in about["model_hash"]}, "make it again"


@for_each("file", FILES)
def test_every_shipped_posterior_has_converged(file: Path) -> None:
    assert read(file)[1]["converged"]


def test_the_files_of_a_group_agree() -> None:
    groups: dict[str, list[Path]] = {}
    for file in FILES:
        groups.setdefault(read(file)[1]["group"], []).append(file)
    for files in groups.values():
        first, about = read(files[0])
        for file in files[1:]:
            other, its = read(file)
            for key in ("seed", "diagnostics", "log_evidence", "claims"):
                assert its[key] == about[key], (file, key)
            # A variant whose runs are those of its base has its base's draws.
            assert [m.split(":")[0] for m in its["members"]] == [m.split(":")[0] for m in about["members"]]
            for name in first.keys() & other.keys() - {"discrepancy", "rough"}:
                assert np.array_equal(first[name], other[name]), (file, name)
