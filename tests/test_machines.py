"""The library of machines: every host and every network keeps the contract, and what is composed of them is a platform like any other."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from refusals import refused

from retrompi.base import paths
from retrompi.base.errors import InputError, RetrompiError, UsageError
from retrompi.papers.statements.sources import rows
from retrompi.sim import simulate
from retrompi.spec import registry
from retrompi.spec.declare.fields import quantities
from retrompi.spec.declare.sources import SOURCE_KINDS
from retrompi.spec.host import Host
from retrompi.spec.machine import composition, machines, platform_file
from retrompi.spec.machine.link import Link
from retrompi.spec.question import Message, Question, pingpong
from retrompi.spec.runtime import origin
from retrompi.studies.define.case import apply
from retrompi.studies.define.scenario import Scenario

HOSTS, NETWORKS = machines.host_names(), machines.network_names()


def _sourced(given: list[tuple[str, Any]]) -> None:
    """Every value says where it is from, lies in its range, and cites rows that exist."""
    known = rows()
    for path, q in given:
        assert q.source.startswith(SOURCE_KINDS), path
        assert q.help, path
        assert q.low is None or q.low <= q.value * (1 + 1e-3), path
        assert q.high is None or q.value <= q.high * (1 + 1e-3), path
        if q.source.startswith(("paper:", "doc:")):
            assert any(q.source.partition(":")[2].startswith(row) for row in known), (path, q.source)


def test_the_library_has_what_was_promised() -> None:
    assert len(HOSTS) >= 20
    assert len(NETWORKS) >= 8
    assert not {*HOSTS, *NETWORKS} & set(registry.platform_names())
    assert not set(HOSTS) & set(NETWORKS)


@for_each("name", HOSTS)
def test_a_host_keeps_the_contract(name: str) -> None:
    machine = machines.host(name)
    assert machine.name == name == machine.path.stem
    assert all((machine.title, machine.summary, re.match(r"\d{4}", machine.years)))
    of_a_host = {k: f for k, f in quantities(Host).items() if k not in machines.CARD_KEYS}
    assert list(machine.quantities) == [k for k, f in of_a_host.items() if not f.optional or k in machine.quantities]
    _sourced(list(machine.quantities.items()))
    value = {k: q.value for k, q in machine.quantities.items()}
    assert value["copy_l1"] >= value["copy_l2"] >= value["copy_mem"]
    assert value["read_mem"] >= value["copy_mem"]
    assert value["l2"] >= value["l1"]
    assert value["cores"] >= value["package_cores"]
    for key, field in quantities(Host).items():
        if key in value:
            field.check(value[key], f"{name}.{key}")


@for_each("name", NETWORKS)
def test_a_network_keeps_the_contract(name: str) -> None:
    net = machines.network(name)
    assert net.name == name == net.path.stem
    assert {k for k, f in quantities(Link).items() if not f.optional} <= {k[5:] for k in net.quantities if k.startswith("link.")}
    card = {k[5:] for k in net.quantities if k.startswith("card.")}
    assert {k for k in machines.CARD_KEYS if not quantities(Host)[k].optional} <= card <= set(machines.CARD_KEYS)
    _sourced(list(net.quantities.items()))
    assert net.quantities["card.mss"].value + 40 <= net.quantities["link.mtu"].value  # 20 B of TCP and 20 B of IP


@for_each("name", HOSTS)
def test_every_host_composes_with_every_network(name: str) -> None:
    for net in NETWORKS:
        room = registry.platform(f"{name}*2@{net}")
        assert [h.name for h in room.hosts] == ["n1", "n2"]
        of_card = machines.network(net).quantities
        for key in ("nic_rate", "nic_rate_in"):
            card = of_card[f"card.{key}"].value if f"card.{key}" in of_card else 0.0
            assert getattr(room.hosts[0], key) == min(card, room.hosts[0].bus_rate)
        assert room.link.kind == machines.network(net).kind
        assert set(room.quantities) >= {f"n2.{k}" for k, f in quantities(Host).items() if not f.optional}


@for_each("name", HOSTS)
def test_a_pair_of_every_host_carries_a_message_and_is_explained(name: str) -> None:
    said = simulate.explain(Question("sockets", f"{name}*2@switch-100", Message(1024), "n1,n2"))
    assert said["total_ps"] == sum(stage["ps"] for stage in said["stages"]) > 0


@for_each("name", NETWORKS)
def test_a_pair_on_every_network_carries_messages(name: str) -> None:
    result = simulate.run(Question("sockets", f"nt4-p6-200*2@{name}", pingpong([1, 65536], 2), "n1,n2"))
    assert result.outcome == "completed"
    link = machines.network(name).quantities["link.bandwidth"].value
    assert result.time_s > 4 * 65536 / link  # two round trips


@for_each("model, platform", [
    ("wmpi", "nt4-p6-200-dual*2@hub-10"), ("mpibip", "linux-piii-933*2@myrinet-lanai9"), ("mpibip:bip", "linux-piii-933*2@myrinet-lanai9"),
    ("mpibip", "linux-p6-200*2@myrinet-lanai4"), ("mpibip:bip", "linux-p6-200*2@myrinet-lanai4"),
    ("craympt", "cray-t3e-pe*2@t3e-torus"), ("craympt:shmem", "cray-t3e-pe*2@t3e-torus"),
])
def test_models_run_on_machines_that_they_were_not_fitted_on(model: str, platform: str) -> None:
    assert simulate.run(Question(model, platform, pingpong([1, 65536], 2), "n1,n2")).outcome == "completed"


def test_a_composition_is_the_platform_that_states_the_same_values() -> None:
    made, written = registry.platform("linux-piii-933*8@myrinet-lanai9"), registry.platform("myrinet-piii")
    assert made.hash == written.hash
    assert (made.hosts, made.link) == (written.hosts, written.link)


@for_each("text, name, hosts", [
    ("nt4-p6-200*8@switch-100", "nt4-p6-200*8@switch-100", 8),
    ("nt4-p6-200*1@hub-10", "nt4-p6-200@hub-10", 1),
    ("nt4-p6-200*2+nt4-p54-133*4@hub-10", "nt4-p6-200*2+nt4-p54-133*4@hub-10", 6),
    ("nt4-p6-200+nt4-p6-200*2@hub-10", "nt4-p6-200*3@hub-10", 3),
    ("nt4-p6-200", "nt4-p6-200", 1),
    ("nt4-p6-200*2@hub-10*5", "nt4-p6-200*2@hub-10*5", 5),
])
def test_a_platform_is_reloaded_by_its_name(text: str, name: str, hosts: int) -> None:
    room = registry.platform(text)
    assert (room.name, len(room.hosts)) == (name, hosts)
    assert registry.platform(room.name).hash == room.hash


def test_mixed_hosts_keep_their_values() -> None:
    room = registry.platform("nt4-p6-200*2+nt4-p54-133*4@hub-10")
    assert [h.clock for h in room.hosts] == [200e6] * 2 + [133e6] * 4
    changed = room.with_overrides({"host.quantum": "20 ms", "n3.cores": "2"})
    assert {h.quantum for h in changed.hosts} == {0.02}
    assert [h.cores for h in changed.hosts] == [1, 1, 2, 1, 1, 1]


@for_each("text, says", [
    ("nt4-p6-201*2@hub-10", "unknown-host | 'nt4-p6-201' | 'nt4-p6-200'"),
    ("nt4-p6-200*2@hub-11", "unknown-network | 'hub-11' | 'hub-10'"),
    ("nt4-p6-200*2", "missing-key | 'nt4-p6-200*2' | nt4-p6-200*2@switch-100"),
    ("p4-1800*3@ge-ga620", "bad-topology | 'ge-ga620' | two hosts"),
    ("nt4-p6-200*0@hub-10", "out-of-range | 1 to 16384"),
    ("nt4-p6-200*99999999999@hub-10", "out-of-range | 1 to 16384"),
    ("nt4-p6-200@hub-10@hub-10", "bad-syntax"),
    ("@hub-10", "bad-syntax"),
    ("nt4-p6-200*2@", "bad-syntax"),
    ("nt4-p6-200**2@hub-10", "bad-syntax"),
    ("nt4-p6-20", "unknown-platform | 'nt4-p6-20' | 'nt4-p6-200'"),
    ("+".join(f"nt4-p6-200+nt4-p54-133*{n}" for n in range(1, 6)) + "@hub-10", "bad-name | 80"),
])
def test_a_wrong_composition_is_one_line(text: str, says: str) -> None:
    with refused(UsageError, says):
        registry.platform(text)


@for_each("platform, made", [
    ("nt-pair", "nt-pair*4"), ("nt-pair*64", "nt-pair*4"), ("nt4-p6-200*8@hub-10", "nt4-p6-200*4@hub-10"),
    ("a*2+b*3@hub-10", "a*2+b*3@hub-10*4"), ("a*2+b*3@hub-10*9", "a*2+b*3@hub-10*4"), ("./x@y.toml", "./x@y.toml*4"),
])
def test_another_number_of_hosts(platform: str, made: str) -> None:
    assert composition.with_size(platform, 4) == made


def test_a_study_varies_hosts_and_compositions() -> None:
    base = Scenario(name="s", title="t", summary="s", reproduces="", model="wmpi", platform="nt4-p6-200*2@hub-10", mode="distributed")
    assert apply(base, {"hosts": "8"}).platform == "nt4-p6-200*8@hub-10"
    assert apply(base, {"platform": "nt4-p54-133*2@switch-100", "hosts": "4"}).platform == "nt4-p54-133*4@switch-100"


# --- services scaled -----------------------------------------------------------------------------------------------------------


def test_services_are_scaled_by_the_ratio_of_speeds_and_say_so() -> None:
    base, faster = machines.host("nt4-p6-150"), machines.host("nt4-p6-200")
    for key in machines.SERVICES:
        q, was = faster.quantities[key], base.quantities[key]
        assert q.value == pytest.approx(was.value * 150 / 200, rel=2e-3)
        assert q.source == f"assumed: nt4-p6-150's {was.text} ({was.source}) by the ratio of speeds"
    # A chain scales once, from the host that states the value.
    assert machines.host("nt4-p2-333").quantities["syscall"].source.startswith("assumed: nt4-p6-150's 4 us")
    assert machines.host("nt4-p6-200-dual").quantities["syscall"] == faster.quantities["syscall"]


# --- a user's own --------------------------------------------------------------------------------------------------------------

MINE = 'title = "mine"\nyears = "1998"\nsummary = "s"\nlike = "nt4-p6-200"\n'
NET = 'title = "mine"\nyears = "1998"\nsummary = "s"\nlike = "hub-10"\n[link]\nbandwidth = { value = "4 Mbps", source = "assumed: mine" }\n'
ROOM = 'name = "lab"\nhosts = "own*3"\nnetwork = "slow"\n'


def _write(root: Path, host: str = MINE, net: str = NET) -> None:
    for folder, name, content in (("hosts", "own", host), ("networks", "slow", net)):
        (root / folder).mkdir(parents=True, exist_ok=True)
        (root / folder / f"{name}.toml").write_text(content, encoding="utf-8")


def test_a_file_of_a_few_lines_finds_what_lies_beside_it(tmp_path: Path) -> None:
    _write(tmp_path)
    file = tmp_path / "lab.toml"
    file.write_text(ROOM, encoding="utf-8")
    room = registry.platform(str(file))
    assert (room.name, room.title, len(room.hosts), room.link.bandwidth) == ("lab", "3 x mine; mine", 3, 0.5e6)
    assert room.hash == registry.platform(f"{file}*3").hash
    # It is read again when a file that it names changes.
    _write(tmp_path, net=NET.replace("4 Mbps", "40 Mbps"))
    assert registry.platform(str(file)).link.bandwidth == 5e6
    with refused(UsageError, "unknown-host | 'own'"):
        registry.platform("own*3@hub-10")


def test_hosts_in_the_users_folder_are_found_by_name(retrompi: Callable[..., Any]) -> None:
    _write(paths.user_platforms_dir())
    assert registry.platform("own*3@slow").link.bandwidth == 0.5e6
    assert "own" in machines.host_names()
    assert " user " in next(line for line in retrompi("platforms", "hosts").out.splitlines() if line.startswith("own"))
    _write(paths.user_platforms_dir(), host="title = 3\n")
    assert "own" in registry.load_errors(models=False)
    assert "own" not in machines.hosts()
    assert "'own' is ignored" in retrompi("platforms", "networks").err


def test_a_host_of_the_library_in_a_file_with_host_tables(tmp_path: Path) -> None:
    _write(tmp_path)
    link = (registry.platform("nt-pair").path or Path()).read_text(encoding="utf-8").partition("[link]")[2]
    card = "".join(f'{k} = {{ value = "{v}", source = "assumed: mine" }}\n' for k, v in
                   (("nic_rate", "9 MB/s"), ("nic_latency", "1 us"), ("mss", "1460 B")))
    file = tmp_path / "mine.toml"
    head = 'name = "mine"\ntitle = "t"\nyears = "1998"\nsummary = "s"\n[[host]]\nname = "a"\nlike = "own"\n'
    file.write_text(f"{head}{card}[link]{link}", encoding="utf-8")
    assert registry.platform(str(file)).hosts[0].clock == 200e6
    file.write_text(f"{head}[link]{link}", encoding="utf-8")
    with refused(InputError, "missing-key | mss, nic_rate, nic_latency"):
        registry.platform(str(file))


@for_each("host, net, room, says", [
    (MINE + "clok = 3\n", NET, ROOM, "unknown-key | own.toml:5 | 'clok' | 'clock'"),
    (MINE.replace("nt4-p6-200", "own"), NET, ROOM, "bad-value | own.toml:4"),
    (MINE.replace("nt4-p6-200", "nt4-p6-20"), NET, ROOM, "unknown-host | own.toml:4 | 'nt4-p6-20'"),
    (MINE.partition("like")[0] + 'os = "x"\nbyte_order = "big"\n', NET, ROOM, "missing-key | own.toml | clock"),
    (MINE + 'services = "halved"\n', NET, ROOM, "bad-value | own.toml:5 | scaled"),
    (MINE + 'cores = { value = 2, source = "me" }\n', NET, ROOM, "bad-source | own.toml:5"),
    (MINE, NET + "[card]\nnic_rat = 3\n", ROOM, "unknown-key | slow.toml:8 | 'nic_rat' | 'nic_rate'"),
    (MINE, NET.replace("[link]", "[link]\nkind = 'wan'"), ROOM, "bad-topology | slow.toml"),
    (MINE, NET.replace("4 Mbps", "4 MB"), ROOM, "bad-unit | slow.toml:6"),
    (MINE, NET.replace("hub-10", "hub-11"), ROOM, "unknown-network | slow.toml:4 | 'hub-11'"),
    (MINE, NET, ROOM.replace("own*3", "own*3@slow"), "bad-syntax | lab.toml:2"),
    (MINE, NET, ROOM.replace("own*3", "owen*3"), "unknown-host | lab.toml:2 | 'owen'"),
    (MINE, NET, ROOM.replace("slow", "slaw"), "unknown-network | lab.toml:3 | 'slaw'"),
    (MINE, NET, ROOM + "[link]\nkind = 'hub'\n", "unknown-key | lab.toml | [[host]]"),
    (MINE, NET, ROOM + "netwerk = 'hub'\n", "unknown-key | lab.toml:4 | 'netwerk' | 'network'"),
    (MINE, NET, 'name = "lab"\nhosts = 3\n', "missing-key | lab.toml:2 | hosts"),
    ("title = [", NET, ROOM, "unreadable-file | own.toml"),
])
def test_a_wrong_file_is_told_by_line(tmp_path: Path, host: str, net: str, room: str, says: str) -> None:
    _write(tmp_path, host, net)
    file = tmp_path / "lab.toml"
    file.write_text(room, encoding="utf-8")
    with refused(InputError, says) as caught:
        platform_file.load(file)
    assert "\n" not in str(caught.value)


@for_each("link, says", [
    ('kind = "pausing-switch"', "missing-key | pausing-switch | buffer"),
    ('kind = "pausing-switch"\nbuffer = { value = "0 B", source = "assumed: x" }', "missing-key | pausing-switch | buffer"),
    ('kind = "hub"\nbuffer = { value = "16 KiB", source = "assumed: x" }', "bad-topology | hub | 16384 B"),
])
def test_a_network_states_what_its_kind_needs_and_nothing_that_it_has_not(link: str, says: str, tmp_path: Path) -> None:
    head = 'title = "t"\nyears = "2003"\nsummary = "s"\n'
    (tmp_path / "networks").mkdir()
    (tmp_path / "networks" / "mine.toml").write_text(f'{head}like = "gigabit"\n\n[link]\n{link}\n', encoding="utf-8")
    (tmp_path / "lab.toml").write_text(f'name = "lab"\n{head}hosts = "xeon-2000*4"\nnetwork = "mine"\n', encoding="utf-8")
    with refused(InputError, f"{says} | mine.toml:7"):
        platform_file.load(tmp_path / "lab.toml")


def test_a_fit_beside_a_host_or_a_network_is_used(tmp_path: Path) -> None:
    fitted = 'syscall = { value = "3 us", source = "fit:own.fit.toml", low = "1 us", high = "9 us" }\n'
    _write(tmp_path, host=MINE + fitted)
    (tmp_path / "lab.toml").write_text(ROOM, encoding="utf-8")
    read = platform_file.load(tmp_path / "lab.toml")
    assert read.quantities["n1.syscall"].source == "assumed: not fitted yet"
    fit = tmp_path / "hosts" / "own.fit.toml"
    fit.write_text('[fit.values]\nsyscall = "5 us"\n', encoding="utf-8")
    read = platform_file.load(tmp_path / "lab.toml")
    assert (read.hosts[2].syscall, read.quantities["n3.syscall"].source) == (5e-6, "fit:own.fit.toml")
    for values, says in (('syscall = "10 us"', "out-of-range"), ('sycall = "5 us"', "unknown-parameter | 'sycall' | 'syscall'"),
                         ('dispatch = "5 us"', "unknown-parameter | 'dispatch'")):
        fit.write_text(f"[fit.values]\n{values}\n", encoding="utf-8")
        with refused(InputError, f"{says} | own.fit.toml"):
            platform_file.load(tmp_path / "lab.toml")


# --- cards and completion ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["nt4-p6-200", "switch-100"])
def test_a_card_quotes_its_sources(name: str, retrompi: Callable[..., Any]) -> None:
    told = retrompi("platforms", "show", name)
    assert told.code == 0
    assert "the claims cited above" in told.out
    assert "E-REC-03" in told.out or "E-CPU-01" in told.out


def test_what_was_never_fitted_there_names_the_table_of_transfer() -> None:
    from retrompi.spec.runtime.outside_range import outside

    (line,) = outside("wmpi", "nt4-p6-200*2@hub-10")
    assert "docs/transfer.md" in line


@pytest.mark.parametrize(("typed", "offered"), [
    ("nt4-p6-200", "nt4-p6-200-dual"), ("nt4-p6-200*2@switch-1", "nt4-p6-200*2@switch-100"), ("a*2+linux-p", "a*2+linux-piii-933"),
    ("nt-p", "nt-pair"),
])
def test_completion(typed: str, offered: str) -> None:
    from retrompi.cli.options import complete_platform

    assert offered in [item.value for item in complete_platform(None, None, typed)]  # type: ignore[arg-type]


def test_errors_are_of_the_project(tmp_path: Path) -> None:
    for text in ("", "*", "@", "+", "a@b@c", "*3", "a*b@c", "\0@x", "../x@hub-10", "nt4-p6-200*2@../switch-100"):
        with pytest.raises(RetrompiError):
            registry.platform(text)


# --- studies, stored runs, more ranks than processors --------------------------------------------------------------------------


def test_a_composition_goes_through_a_study_its_store_and_its_pack(tmp_path: Path, retrompi: Callable[..., Any]) -> None:
    _write(tmp_path)
    file = tmp_path / "lab.toml"
    file.write_text(ROOM, encoding="utf-8")
    store = ("--store", str(tmp_path / "runs.db"))
    varied = f"platform=nt4-p6-200*2@hub-10,{file}"
    made = retrompi(*store, "sweep", "bf-wmpi-distributed", "--vary", varied, "--set", "trace.sizes=1KiB", "--name", "two", "-j", "2")
    assert made.code == 0, made.err
    assert {r["platform"] for r in json.loads(retrompi(*store, "runs", "list", "--all", "--json").out)} == {"nt4-p6-200*2@hub-10", "lab"}
    assert "nt4-p6-200" not in retrompi(*store, "runs", "diff", "1", "2").err  # a composition is read again by its name
    packed = str(tmp_path / "two.zip")
    assert retrompi(*store, "study", "pack", "two", "-o", packed).code == 0
    assert retrompi("study", "unpack", packed, str(tmp_path / "there")).code == 0
    found = {p.relative_to(tmp_path / "there").as_posix() for p in (tmp_path / "there").rglob("*.toml")}
    assert found >= {"platforms/lab.toml", "platforms/hosts/own.toml", "platforms/networks/slow.toml"}
    again = retrompi("--store", str(tmp_path / "again.db"), "study", "run", str(tmp_path / "there" / "study.toml"))
    assert again.code == 0, again.err


def test_a_study_with_hosts_of_ones_own_names_a_file_to_be_packed(tmp_path: Path, retrompi: Callable[..., Any]) -> None:
    _write(paths.user_platforms_dir())
    store = ("--store", str(tmp_path / "runs.db"))
    run = ("sweep", "bf-wmpi-distributed", "--vary", "platform=own*2@slow", "--set", "trace.sizes=1KiB", "--name", "mine", "-j", "1")
    assert retrompi(*store, *run).code == 0
    told = retrompi(*store, "study", "pack", "mine", "-o", str(tmp_path / "mine.zip"))
    assert told.code == 2
    assert "write a platform file" in told.err


def test_more_ranks_than_processors_names_the_composition_that_has_enough(tmp_path: Path, retrompi: Callable[..., Any]) -> None:
    trace = tmp_path / "four.ti"
    trace.write_text("".join(f"{r} compute 100\n" for r in range(4)), encoding="utf-8")
    run = ("replay", str(trace), "-m", "wmpi", "-p", "nt4-p6-200*2@hub-10", "--mode", "block")
    told = retrompi("--store", str(tmp_path / "runs.db"), *run)
    assert "-p 'nt4-p6-200*4@hub-10' has a processor for each rank" in " ".join(told.err.split())


def test_a_number_that_a_host_has_and_the_one_like_it_has_not_is_its_own() -> None:
    """Every number of every host has an origin: draws of ``linux-k7-500`` need it, whose product's rate the host like it does not state."""
    for name in HOSTS:
        keys = machines.host(name).quantities
        found = origin.of_platform(registry.platform(name), [f"{registry.platform(name).hosts[0].name}.{key}" for key in keys])
        assert len(found) == len(keys)
    assert origin.of_platform(registry.platform("linux-k7-500"), ["n1.gemm_rate"])["n1.gemm_rate"].path == "linux-k7-500.gemm_rate"
