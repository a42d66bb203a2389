"""What a runtime needs of a platform: every pair is possible or refused in one line; a fiction is asked for and called one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Outcome
from refusals import refused

from retrompi.base.errors import InputError, UsageError
from retrompi.sim.resolved import Resolved
from retrompi.spec import needs, registry
from retrompi.spec.machine import machines
from retrompi.spec.needs import Needs, lacks
from retrompi.spec.question import Question, pingpong
from retrompi.spec.runtime import possible
from retrompi.spec.technology import TECHNOLOGIES
from retrompi.studies.define import case, catalogue
from retrompi.studies.execute import design
from retrompi.studies.execute.design import each

pytestmark = pytest.mark.usefixtures("here")
Run = Callable[..., Outcome]
HEAT = Path(__file__).parents[1] / "examples" / "traces" / "heat-4.tar.zst"
TEN = ("nt-cluster", "abe", "abe-windows", "cray-t3e", "cray-j90", "myrinet-piii", "linux-piii-933*4@gigabit", "linux-p6-200*4@hub-10",
       "ibm-sp1*4@sp1-switch", "xeon-2000*2@ip-gm-pci64c")


def ask(model: str, platform: str, **more: bool) -> Resolved:
    return Resolved.of(Question(model, platform, pingpong([8], 1), "natural", **more))


def test_every_pair_of_a_model_and_a_platform_is_possible_or_refused() -> None:
    possible_pairs = refusals = 0
    for name, cls in registry.models().items():
        assert cls.needs is not None, f"{name} says nothing of what it needs"
        for room in (*registry.platforms().values(), *map(registry.platform, TEN)):
            if lacks(cls.needs, room):
                refusals += 1
                with refused(UsageError, f"impossible-hardware | {name} needs | --what-if-hardware"):
                    ask(name, room.name)
                assert ask(name, room.name, what_if_hardware=True).fiction.startswith(f"a what-if: {cls.title} ")
                near = possible.nearby(cls, room)
                assert near, (name, room.name)
                assert not any(possible.fiction(cls, other) for other in near)
            else:
                possible_pairs += 1
                assert not ask(name, room.name).fiction
        own = registry.own_platforms(cls)
        assert own, name
        assert not any(possible.fiction(cls, registry.platform(platform)) for platform in own), name
    assert min(possible_pairs, refusals) > 200


def test_every_network_of_the_package_says_what_it_is() -> None:
    for name, net in machines.networks().items():
        assert net.technology in TECHNOLOGIES, name
    for name, room in registry.platforms().items():
        assert room.technology in TECHNOLOGIES or len(room.hosts) == 1, name


@pytest.mark.parametrize(
    ("model", "platform", "lacking"),
    [
        ("mpichgm", "linux-piii-933*4@gigabit", ("network",)),
        ("mpichgm", "xeon-2000*2@ip-gm-pci64c", ("network",)),
        ("mpibip", "myrinet-piii", ()),
        ("mpibip:windows", "myrinet-piii", ()),
        ("mpibip", "nt4-p6-200*2@myrinet-lanai4", ("system",)),
        ("gm", "linux-p6-200*2@hub-10", ("network",)),
        ("craympt", "nt-cluster", ("network", "system")),
        ("wmpi", "cray-t3e", ("network", "system")),
        ("wmpi", "nt-unix", ()),
        ("lam", "nt-unix", ("system",)),
        ("nemesis", "abe", ()),
        ("nemesis:windows", "abe", ("system",)),
        ("nemesis:windows", "abe-windows", ()),
        ("lam", "linux-p6-200*2@myrinet-lanai4", ()),
        ("mpich", "cray-t3e", ("network",)),
        ("mpif", "ibm-sp2-thin*2@sp2-switch", ()),
    ],
)
def test_known_pairs(model: str, platform: str, lacking: tuple[str, ...]) -> None:
    assert lacks(registry.model(model).needs, registry.platform(platform)) == lacking


def test_an_impossible_pair_ends_every_command_with_one_line(retrompi: Run) -> None:
    pair = ["-m", "mpichgm", "-p", "linux-piii-933*4@gigabit"]
    for line in (["pingpong", "--sizes", "8B"], ["explain", "--size", "8B"], ["replay", str(HEAT)], ["startup"],
                 ["fidelity", "--sizes", "8B"], ["explore", str(HEAT)], ["why", str(HEAT)], ["smpi", "export"]):
        done = retrompi(*line, *pair)
        assert (done.code, done.error) == (2, "impossible-hardware"), (line, done)
        assert "linux-piii-933*4@myrinet" in done.err
        assert done.err.count("\n") == 1
    told = json.loads(retrompi("compare", str(HEAT), "--models", "lam,mpichgm", "-p", pair[3], "--json").out)
    assert {r["model"]: r["outcome"] for r in told["rows"]} == {"lam": "completed", "mpichgm": "error"}


def test_a_fiction_is_asked_for_and_called_one(retrompi: Run) -> None:
    pair = ["-m", "mpichgm", "-p", "linux-piii-933*4@gigabit", "--what-if-hardware"]
    said = "a what-if: MPICH-GM on Ethernet, where it never ran"
    for line in (["pingpong", "--sizes", "8B", "--reps", "2"], ["explain", "--size", "8B"], ["replay", str(HEAT)], ["startup"],
                 ["explore", str(HEAT)], ["fidelity", "--sizes", "8B", "--reps", "2"], ["why", str(HEAT)]):
        done = retrompi(*line, *pair)
        assert done.code == 0, done.err
        title = " ".join(done.out.split())
        assert f"[{said}]" in title, (line, title)
    assert not needs.allows_fiction(), "it ends with the command"
    for line in (["startup"], ["explore", str(HEAT)]):
        told = json.loads(retrompi(*line, *pair, "--json").out)
        assert [w["code"] for w in told["warnings"]] == ["never-ran-there"]
    run = retrompi("why", "1")  # who has stored it has asked for it
    assert (run.code, f"[{said}]" in " ".join(run.out.split())) == (0, True), run.err
    done = retrompi("compare", str(HEAT), "--models", "lam,mpichgm", *pair[2:])
    assert done.code == 0
    assert said in " ".join((done.out + done.err).split())


def test_scenarios_studies_and_python_have_the_same_key(tmp_path: Path) -> None:
    import retrompi

    with refused(UsageError, "impossible-hardware"):
        retrompi.pingpong("gm", "nt-pair", sizes=[8], reps=1)
    assert "a what-if: GM" in retrompi.pingpong("gm", "nt-pair", sizes=[8], reps=1, what_if_hardware=True).title
    base = catalogue.scenario("bf-wmpi-shared")
    assert base.path is not None
    text = base.path.read_text().replace('platform = "nt-pair"', 'platform = "cray-t3e"')
    (tmp_path / "refused.toml").write_text(text)
    (tmp_path / "fiction.toml").write_text(f"what_if_hardware = true\n{text}")
    (tmp_path / "wrong.toml").write_text(f'what_if_hardware = "yes"\n{text}')
    with refused(UsageError, "impossible-hardware"):
        case.identity(catalogue.scenario(str(tmp_path / "refused.toml")))
    assert case.identity(catalogue.scenario(str(tmp_path / "fiction.toml")))
    with refused(InputError, "bad-value | true or false"):
        catalogue.scenario(str(tmp_path / "wrong.toml"))
    study = 'name = "there"\nscenario = "bf-wmpi-shared"\n[vary]\nplatform = ["cray-t3e"]\n'
    (tmp_path / "study.toml").write_text(study)
    (tmp_path / "allowed.toml").write_text(f"what_if_hardware = true\n{study}")
    (point,) = each(design.study(str(tmp_path / "study.toml")))
    with refused(UsageError, "impossible-hardware"):
        case.identity(point.scenario)
    (point,) = each(design.study(str(tmp_path / "allowed.toml")))
    assert case.identity(point.scenario)


def test_python_asks_for_a_fiction_wherever_it_simulates(tmp_path: Path) -> None:
    import retrompi

    store = tmp_path / "runs.db"
    study = 'name = "there"\nscenario = "bf-wmpi-shared"\n[vary]\nplatform = ["abe"]\n[set]\n"trace.sizes" = "8B"\n"trace.reps" = 1\n'
    (tmp_path / "there.toml").write_text(study)
    short = {"trace.sizes": "8B", "trace.reps": 1}
    asked: list[Callable[..., Any]] = [
        lambda **more: retrompi.compare_runtimes(HEAT, ["lam", "mpichgm"], platforms=["linux-piii-933*4@gigabit"], jobs=1, **more),
        lambda **more: retrompi.sweep("bf-wmpi-shared", {"platform": ["abe"]}, set=short, jobs=1, **more),
        lambda **more: retrompi.study(tmp_path / "there.toml", jobs=1, **more),
        lambda **more: retrompi.optimise("bf-wmpi-shared", {"platform": ["abe", "nt-pair"]}, set=short, trials=3, jobs=1, **more),
        lambda **more: retrompi.pingpong("gm", "nt-pair", sizes=8, reps=1, **more).path(),
    ]
    for ask_for in asked:
        told = ask_for(what_if_hardware=True, store=store)
        assert "never-ran-there" in [w.code for w in told.warnings], told
        assert "a what-if" in told._repr_html_()
    assert not needs.allows_fiction()
    plain = retrompi.compare_runtimes(HEAT, ["lam", "mpichgm"], platforms=["linux-piii-933*4@gigabit"], store=store, jobs=1)
    assert {r["model"]: r["outcome"] for r in plain.rows} == {"lam": "completed", "mpichgm": "error"}


def test_an_impossible_pair_is_refused_before_its_program_is_compiled(retrompi: Run, tmp_path: Path) -> None:
    program = tmp_path / "wrong.c"
    program.write_text("this is no C")
    for backend in ("model", "smpi"):
        done = retrompi("run", "-b", backend, "-m", "mpichgm", "-p", "linux-piii-933*4@gigabit", str(program))
        assert (done.code, done.error) == (2, "impossible-hardware"), done


def apart(model: str, platform: str, mode: str, **more: bool) -> str:
    return Resolved.of(Question(model, platform, pingpong([8], 1), mode, **more)).apart


def test_what_a_platform_may_be_and_which_hosts_of_a_mixed_one_are_used(retrompi: Run) -> None:
    both = "linux-piii-933*4@gigabit"  # Linux 2.4 or Windows 2000
    for model in ("winmpich", "chnt", "ntmpich", "wmpi", "lam"):
        assert not apart(model, both, "distributed"), model
    assert not apart("wmpi", "nt-unix", "distributed")
    for model in ("wmpi", "hpvm"):
        assert apart(model, "nt-unix", "unix,unix").startswith("unix runs HP-UX 9; no rank is on a host with Windows, which "), model
    assert "exists for Win32 only" in apart("winmpich", "nt-unix", "distributed")
    assert not apart("winmpich", "abe", "distributed", what_if_hardware=True), "what was asked for is simulated"
    assert "memory of one machine" in apart("mpich:shmem", "nt-cluster", "distributed", what_if_hardware=True)
    assert apart("sockets:pipe", both, "distributed") == "a pipe joins processes of one machine"


def test_the_flag_changes_no_identity() -> None:
    same = [Question("wmpi", "nt-pair", pingpong([8], 1), what_if_hardware=allowed) for allowed in (True, False)]
    assert same[0] == same[1]
    assert Resolved.of(same[0]).key == Resolved.of(same[1]).key


def test_what_is_not_declared_restricts_nothing(toy: Path) -> None:
    assert registry.model(str(toy)).needs is None
    for platform in ("cray-t3e", "nt-pair", "myrinet-piii"):
        assert not ask(str(toy), platform).fiction
    for wrong in ({"networks": ("token-ring",)}, {"systems": ("cp/m",)}):
        with pytest.raises(ValueError, match="Needs: no"):
            Needs(**wrong, source="assumed: none")
    with pytest.raises(ValueError, match="source"):
        Needs(networks=("myrinet",), source="somewhere")


def test_cards_of_models_show_their_needs(retrompi: Run) -> None:
    assert "needs: Myrinet and Linux (doc:TC02-035" in retrompi("models", "show", "mpichgm").out
    assert json.loads(retrompi("models", "show", "mpichgm", "--json").out)["needs"]["text"] == "Myrinet and Linux"
