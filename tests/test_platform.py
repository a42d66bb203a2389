"""Machine rooms: every shipped one keeps the contract, and a wrong file is told by line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cases import for_each
from conftest import cited_ids, reference_ids
from refusals import agrees, refused

from retrompi.base.errors import InputError, UsageError
from retrompi.spec import platform, registry
from retrompi.spec.declare.fields import quantities
from retrompi.spec.declare.sources import SOURCE_KINDS
from retrompi.spec.host import Host
from retrompi.spec.machine import platform_file
from retrompi.spec.machine.link import Link

NAMES = registry.platform_names()


def rooms() -> list[platform.Platform]:
    return [registry.platform(name) for name in NAMES]


def test_shipped() -> None:
    assert {"nt-pair", "nt-cluster"} <= set(NAMES)


@for_each("room", rooms)
def test_contract(room: platform.Platform) -> None:
    assert room.path is not None
    assert room.name == room.path.stem
    assert len({h.name for h in room.hosts}) == len(room.hosts)
    for host in room.hosts:
        for key in quantities(Host):
            assert isinstance(getattr(host, key), float)
            assert room.quantity(f"{host.name}.{key}").value == getattr(host, key)
        assert host.cores >= 1
        assert host.speed > 0
        assert host.l2 > host.l1
        assert host.copy_l1 >= host.copy_l2 >= host.copy_mem
        assert host.mss + 40 <= room.link.mtu  # 20 B of TCP and 20 B of IP
    for key in quantities(Link):
        assert getattr(room.link, key) == room.quantity(f"link.{key}").value
    for row in room.describe():
        assert row["source"].startswith(SOURCE_KINDS)
        assert row["source"].partition(":")[2]
        assert row["help"]
        assert row["low"] is None or row["low"] <= row["value"]
        assert row["high"] is None or row["value"] <= row["high"]


@for_each("room", rooms)
def test_every_cited_source_exists(room: platform.Platform) -> None:
    assert room.path is not None
    cited = cited_ids(room.path.read_text(encoding="utf-8"))
    for row in room.describe():
        cited |= cited_ids(f"{row['source']} {row['help']}")
    assert cited
    assert cited <= reference_ids(), cited - reference_ids()
    for row in room.describe():
        if row["source"].startswith(("paper:", "doc:")):
            assert cited_ids(row["source"]), row


def test_nt_pair_is_table_1() -> None:
    server, workstation = registry.platform("nt-pair").hosts
    assert (server.name, workstation.name) == ("server", "workstation")
    assert (server.quantum, workstation.quantum) == (0.12, 0.04)
    assert (server.clock, workstation.clock) == (150e6, 75e6)
    assert server.cores == workstation.cores == 1


def test_nt_cluster_is_six_machines_on_a_hub() -> None:
    room = registry.platform("nt-cluster")
    assert [h.name for h in room.hosts] == ["n1", "n2", "n3", "n4", "n5", "n6"]
    assert room.link.kind == "hub"
    assert room.link.bandwidth == 1.25e6


def test_overrides() -> None:
    room = registry.platform("nt-pair")
    changed = room.with_overrides({"server.quantum": "30 ms", "host.quantum": "20 ms", "link.bandwidth": "10 Mbps"})
    assert [h.quantum for h in changed.hosts] == [0.03, 0.02]  # one host is more than all hosts, whatever the order
    assert changed.link.bandwidth == 1.25e6
    assert room.hosts[0].quantum == 0.12
    assert changed.hash != room.hash
    assert changed.overridden == {"server.quantum", "workstation.quantum", "link.bandwidth"}
    assert changed.quantities["server.quantum"].source == "assumed: set by the user (was 120 ms, doc:E-NT-01)"
    assert room.with_overrides({"link.kind": "hub"}).link.kind == "hub"
    assert room.with_overrides({"host.quantum": "120 ms"}).with_overrides({"workstation.quantum": "40 ms"}).hash == room.hash


@for_each(
    "key, value, says",
    [
        ("host.qantum", "20 ms", "unknown-parameter | 'platform.host.quantum'"),
        ("sever.quantum", "20 ms", "unknown-parameter | 'platform.server.quantum'"),
        ("quantum", "20 ms", "unknown-parameter | 'platform.quantum'"),
        ("link.bandwith", "1 Mbps", "unknown-parameter | 'platform.link.bandwidth'"),
        ("host.quantum", "20", "bad-unit | platform.host.quantum | '20'"),
        ("host.cores", "1.5", "out-of-range"),
        ("host.cores", "0", "out-of-range"),
        ("host.quantum_carry", "2", "bad-value"),
        ("host.copy_mem", "0", "out-of-range"),
        ("link.kind", "hubb", "unknown-name | 'hubb' | 'hub'"),
    ],
)
def test_wrong_overrides(key: str, value: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        registry.platform("nt-pair").with_overrides({key: value})
    agrees(caught.value, says)


def test_a_host_may_do_without_an_optional_value(tmp_path: Path) -> None:
    room = registry.platform("nt-pair")
    assert not any(path.endswith("nic_rate_in") for path in room.quantities)
    changed = room.with_overrides({"server.nic_rate_in": "2 MB/s"})
    assert [h.nic_rate_in for h in changed.hosts] == [2e6, 0]
    assert [h.nic_rate_in for h in changed.of_size(3).hosts] == [2e6, 0, 2e6]
    assert changed.hash != room.hash
    assert [h.nic_rate_in for h in room.with_overrides({"host.nic_rate_in": "2 MB/s"}).hosts] == [2e6, 2e6]
    (tmp_path / "fit.toml").write_text('[fit.values]\n"host.nic_rate_in" = "2 MB/s"\n')
    with refused(InputError, "unknown-parameter | nic_rate_in"):
        room.with_fit(tmp_path / "fit.toml")
    file = _edited(tmp_path, "nic_rate = {", 'nic_rate_in = { value = "2 MB/s", source = "assumed: mine" }\nnic_rate = {', 1)
    assert [h.nic_rate_in for h in platform_file.load(file).hosts] == [2e6, 0]


def test_placement() -> None:
    room = registry.platform("nt-pair")
    assert room.placement("shared") == "shared"
    assert room.placement("workstation, server") == [1, 0]
    assert room.placement("0,1,1") == [0, 1, 1]
    for text in ("shard", "2", "server,", "-1"):
        with refused(UsageError, "unknown-host"):
            room.placement(text)


def _edited(tmp_path: Path, old: str, new: str, count: int = 1) -> Path:
    text = (registry.platform("nt-pair").path or Path()).read_text(encoding="utf-8")
    assert old in text
    file = tmp_path / "mine.toml"
    file.write_text(text.replace(old, new, count), encoding="utf-8")
    return file


def _line_of(file: Path, part: str, number: int = 1) -> int:
    lines = [i for i, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1) if part in line]
    return lines[number - 1]


@for_each(
    "old, new, at, says",
    [
        ('value = "40 ms"', 'value = "40"', "quantum = {", "bad-unit | 'quantum' | '40'"),
        ('value = "40 ms"', 'value = "40 MiB"', "quantum = {", "bad-unit | 'MiB'"),
        ('value = "8 KiB"', 'value = "8 KB"', "l1 =", "bad-unit"),
        ('source = "doc:E-NT-02"', 'source = "somewhere"', "quantum = {", "bad-source"),
        ('source = "doc:E-NT-02", ', "", "quantum = {", "bad-source"),
        ("quantum = {", "quantam = {", "quantam", "unknown-key | 'quantam' | 'quantum'"),
        ('value = "40 ms"', "valeu = 1", "quantum = {", "bad-value"),
        ('low = "20 ms"', 'low = "41 ms"', "quantum = {", "out-of-range"),
        ('name = "server"', 'name = "link"', 'name = "link"', "bad-name"),
        ('kind = "cable"', 'kind = "wire"', 'kind = "wire"', "unknown-name | 'wire'"),
        ("nic_rate = {", "# nic_rate = {", 'name = "server"', "missing-key | 'server' | nic_rate"),
        ("mtu = {", "# mtu = {", "[link]", "missing-key"),
        ('title = "NT', 'titel = "NT', "titel", "unknown-key | 'titel' | 'title'"),
        ('name = "nt-pair"', "name = ", "name = ", "unreadable-file | TOML"),
    ],
)
def test_a_wrong_file_is_told_by_line(tmp_path: Path, old: str, new: str, at: str, says: str) -> None:
    file = _edited(tmp_path, old, new)
    with pytest.raises(InputError) as caught:
        platform_file.load(file)
    assert str(caught.value).startswith(f"{file}:{_line_of(file, at)}: ")
    agrees(caught.value, says)
    assert "\n" not in str(caught.value)


def test_the_line_is_the_second_hosts(tmp_path: Path) -> None:
    file = _edited(tmp_path, "", "", 0)
    before, at, after = file.read_text(encoding="utf-8").rpartition("nic_latency = {")
    file.write_text(f"{before}{at}{after.replace('100 us', '100', 1)}", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        platform_file.load(file)
    assert caught.value.line == _line_of(file, "nic_latency = {", 2)


@for_each("text", ["", "[host]\nname = 'a'", "host = 3", "[[host]]\n", "name = 3", "link = 1\nhost = [1]"])
def test_any_other_toml_is_one_line(tmp_path: Path, text: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        platform_file.load(file)
    assert str(caught.value).startswith(str(file))
    assert "\n" not in str(caught.value)


def test_unreadable_files(tmp_path: Path) -> None:
    with refused(InputError, "unreadable-file"):
        platform_file.load(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with refused(InputError, "unreadable-file"):
        platform_file.load(tmp_path / "bytes.toml")


def test_like_takes_a_host_from_another_platform(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    link = (registry.platform("nt-pair").path or Path()).read_text(encoding="utf-8").partition("[link]")[2]
    head = 'name = "mine"\ntitle = "t"\nyears = "1998"\nsummary = "s"\n'
    host = '[[host]]\nname = "a"\nlike = "nt-pair:workstation"\ncores = { value = 2, source = "assumed: mine" }\n'
    file.write_text(f'{head}{host}[[host]]\nname = "b"\nlike = "a"\n[link]{link}', encoding="utf-8")
    room = platform_file.load(file)
    assert [h.cores for h in room.hosts] == [2, 2]
    assert room.hosts[1].quantum == 0.04
    assert room.hosts[1].os == "Windows NT Workstation 4"
    for wrong in ("nt-pear:server", "nt-pair:sever", "z", "mine:a"):
        file.write_text(f'{head}[[host]]\nname = "a"\nlike = "{wrong}"\n[link]{link}', encoding="utf-8")
        with pytest.raises(InputError) as caught:
            platform_file.load(file)
        assert caught.value.line == 7


def test_a_fit_beside_the_file(tmp_path: Path) -> None:
    file = _edited(tmp_path, "nic_rate = {", "nic_rate = { ", 2)
    text = re.sub(r'(nic_rate = .*?source = )"[^"]*"', r'\1"fit:claims of the card"', file.read_text(encoding="utf-8"))
    file.write_text(text, encoding="utf-8")
    fit = tmp_path / "mine.fit.toml"
    plain = platform_file.load(file)
    assert plain.quantities["server.nic_rate"].source == "assumed: not fitted yet"
    fit.write_text('[fit.values]\n"host.nic_rate" = "4 MB/s"\n')
    fitted = platform_file.load(file)
    assert [h.nic_rate for h in fitted.hosts] == [4e6, 4e6]
    assert fitted.quantities["server.nic_rate"].source == "fit:claims of the card"
    assert fitted.overridden == frozenset()
    assert fitted.hash != plain.hash
    for text, says in (
        ('"host.nic_rate" = "40 MB/s"', "outside its sourced range"),
        ('"host.nic_rat" = "4 MB/s"', "did you mean 'platform.host.nic_rate'?"),
        ('"host.nic_rate" = "4"', "has no unit"),
        ('"host.tick" = "5 ms"', "is not a fitted quantity"),
        ("[", "not valid TOML"),
    ):
        fit.write_text(f"[fit.values]\n{text}\n")
        with pytest.raises(InputError) as caught:
            platform_file.load(file)
        assert str(caught.value).startswith(str(fit))
        assert says in str(caught.value)
