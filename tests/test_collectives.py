"""Tables of collective algorithms: which a model takes when, what a user may put in their place, and algorithms that know the hosts."""

from __future__ import annotations

import random
from typing import Any

import pytest
from asking import ask
from cases import for_each
from click.testing import CliRunner
from collective_flow import Case
from collective_flow import run as flow
from engine_runs import job
from ideal import cost as c
from ideal import run as ideal
from refusals import refused

from retrompi.base.errors import UsageError
from retrompi.cli.main import cli
from retrompi.sim import simulate
from retrompi.sim.resolved import Resolved
from retrompi.spec import registry
from retrompi.spec.collectives import COUNTS, MPICH1, OPERATIONS, VOLUMES, Choice, algorithms, card_rows, doors
from retrompi.spec.model import model_values
from retrompi.spec.question import Question, Replay, Starts

MODELS = sorted(registry.models())
FAR = 1 << 62


def chosen(model: str, platform: str, mode: Any, lines: list[str], **options: Any) -> set[tuple[str, str]]:
    result = ask(model, platform, job(*lines), mode, **options)
    assert result.outcome == "completed", (result.outcome, result.detail, result.waits)
    return {(row["operation"], row["algorithm"]) for row in result.collectives}


# -- tables


@for_each("model", MODELS)
def test_every_model_has_an_algorithm_for_every_call(model: str) -> None:
    table = registry.model(model).collectives
    for operation in OPERATIONS:
        rows = [row for row in table if row.operation == operation]
        assert rows, (model, operation)
        last = rows[-1]
        assert (last.low, last.high, last.ranks, last.count, last.nodes) == (0, None, (1, None), "any", False), (model, operation)


@for_each("model", MODELS)
def test_every_row_can_be_reached_and_says_where_it_is_from(model: str) -> None:
    for operation in OPERATIONS:
        rows = [row for row in registry.model(model).collectives if row.operation == operation]
        for i, row in enumerate(rows):
            assert row.source.partition(":")[2].strip()
            for before in rows[:i]:
                wider = before.low <= row.low and (row.high or FAR) <= (before.high or FAR)
                more = before.ranks[0] <= row.ranks[0] and (row.ranks[1] or FAR) <= (before.ranks[1] or FAR)
                alike = before.count in ("any", row.count) and (row.nodes or not before.nodes)
                assert not (wider and more and alike), (model, operation, i)


NT = ("wmpi", "winmpich", "hpvm", "mpibip")


@pytest.mark.parametrize("model", NT)
def test_the_first_models_are_mpich_1(model: str) -> None:
    assert registry.model(model).collectives is MPICH1


BOUNDS = [
    # bytes, ranks -> algorithm of MPICH2 1.3a2 where no two ranks share a host
    ("bcast", 12287, 8, "binomial"), ("bcast", 12288, 8, "scatter_doubling"), ("bcast", 12288, 7, "binomial"),
    ("bcast", 12288, 9, "scatter_ring"), ("bcast", 524287, 8, "scatter_doubling"), ("bcast", 524288, 8, "scatter_ring"),
    ("bcast", 524288, 7, "binomial"), ("bcast", 0, 8, "nothing"),
    ("reduce", 2048, 8, "binomial"), ("reduce", 2049, 8, "rabenseifner"),
    ("allreduce", 2048, 6, "doubling"), ("allreduce", 2049, 6, "rabenseifner"),
    ("allgather", 65535, 8, "doubling"), ("allgather", 65536, 8, "ring"), ("allgather", 13653, 6, "bruck"), ("allgather", 13654, 6, "ring"),
    ("alltoall", 256, 8, "bruck"), ("alltoall", 257, 8, "throttled_4"), ("alltoall", 256, 7, "throttled_4"),
    ("alltoall", 32768, 8, "throttled_4"), ("alltoall", 32769, 8, "pairwise"),
]


@for_each("operation, size, ranks, algorithm", BOUNDS)
def test_nemesis_changes_its_algorithm_where_mpich2_does(operation: str, size: int, ranks: int, algorithm: str) -> None:
    line = {"bcast": f"bcast {size} 0 6", "reduce": f"reduce {size} 0 0 6", "allreduce": f"allreduce {size} 0 6"}
    lines = [line.get(operation, f"{operation} {size} {size} 6 6")] * ranks
    where = list(range(ranks)) if ranks <= _hosts() else "distributed"
    rows = simulate.compile_question(Resolved.of(Question("nemesis", "abe", Starts(ranks), where))).rows
    used = {a for o, a, _ in ideal_with(lines, rows["collectives"])["collectives"] if o == operation}
    assert used == {algorithm}


def _hosts() -> int:
    return len(registry.platform("abe").hosts)


def ideal_with(lines: list[str], rows: Any) -> dict[str, Any]:
    """A job on the ideal network with a model's table."""
    from ideal import compiled

    from retrompi import _engine, traces

    texts = [(f"{r} init\n{r} {line}\n{r} finalize\n".encode(), f"rank-{r}.txt", r) for r, line in enumerate(lines)]
    got = _engine.simulate(compiled(len(lines)) | {"collectives": rows}, traces.Trace.parse(texts))
    assert got["outcome"] == "completed"
    return got


@for_each(
    "row, says",
    [
        (("bcast", "binomal", {}), "did you mean 'binomial'?"),
        (("bcst", "binomial", {}), "did you mean 'bcast'?"),
        (("bcast", "binomial", {"high": "12 KB"}), "ambiguous"),
        (("bcast", "binomial", {"high": "4 B", "low": "8 B"}), "empty range"),
        (("bcast", "binomial", {"ranks": (8, 2)}), "empty range"),
        (("bcast", "binomial", {"count": "powers"}), "did you mean 'power'?"),
        (("bcast", "binomial", {"source": "I think so"}), "must begin"),
        (("alltoallv", "posted", {"high": "1 KiB"}), "none can decide"),
    ],
)
def test_a_wrong_row_fails_where_it_is_declared(row: tuple[str, str, dict[str, Any]], says: str) -> None:
    operation, algorithm, facts = row
    with pytest.raises(ValueError, match=says.replace("?", "\\?")):
        Choice(operation, algorithm, **{"source": "assumed: a test", **facts})


def test_a_row_says_in_words_when_it_counts() -> None:
    def words(**facts: Any) -> str:
        return Choice("bcast", "binomial", source="assumed: a test", **facts).condition()

    assert words() == ""
    assert words(high="12 KiB", ranks=(1, 7)) == "< 12 KiB (the vector), up to 7 ranks"
    assert words(low="12 KiB", high="512 KiB", count="power") == "≥ 12 KiB and < 512 KiB (the vector), a power of two of ranks"
    assert words(low="1 MiB", ranks=(8, None), nodes=True) == "≥ 1 MiB (the vector), 8 ranks or more, ranks share a host"
    assert set(COUNTS) == {"any", "power", "other"}
    assert set(VOLUMES) == set(OPERATIONS)


# -- what a user puts in their place


@for_each("model", ["wmpi", "nemesis:windows", "craympt", "mpibip", "sockets"])
@for_each("form", ["coll.bcast", "{base}.coll.bcast", "{model}.coll.bcast"])
def test_every_model_takes_an_algorithm_by_each_form_of_its_name(model: str, form: str) -> None:
    key = form.format(model=model, base=model.partition(":")[0])
    values = model_values(registry.model(model), [f"{key}=chain"])
    setting = values.settings["coll.bcast"]
    assert (setting.value, setting.overridden) == ("chain", True)
    assert setting.source == "assumed: set by the user (was the model's table)"
    rows = [row for row in card_rows(registry.model(model).collectives, values) if row["operation"] == "bcast"]
    assert [(row["algorithm"], row["overridden"]) for row in rows] == [("chain", True)]


@for_each(
    "item, says",
    [
        ("coll.bcst=binomial", "unknown-parameter | 'coll.bcst' | 'coll.bcast' | coll.allgather"),
        ("wmpi.coll.bcst=binomial", "unknown-parameter | 'wmpi.coll.bcast' | wmpi.coll.allgather"),
        ("hpvm.coll.bcast=binomial", "unknown-parameter | 'wmpi' | 'hpvm.coll.bcast'"),
        ("coll.bcast=binomal", "unknown-name | coll.bcast | 'binomal' | 'binomial' | by_reference"),
        ("coll=binomial", "unknown-parameter | 'coll'"),
        ("coll.=binomial", "unknown-parameter | 'coll.'"),
    ],
)
def test_a_wrong_name_lists_the_right_ones(item: str, says: str) -> None:
    with refused(UsageError, says):
        model_values(registry.model("wmpi"), [item])


def test_an_override_is_what_runs() -> None:
    lines = ["bcast 70000 0 6; allreduce 64 0 6"] * 4
    assert chosen("wmpi", "nt-pair", "shared", lines) == {("bcast", "binomial"), ("allreduce", "reduce_bcast"), ("reduce", "binomial")}
    sets = ["coll.bcast=linear", "wmpi.coll.allreduce=ring"]
    assert chosen("wmpi", "nt-pair", "shared", lines, sets=sets) == {("bcast", "linear"), ("allreduce", "ring")}


def test_an_override_of_a_part_counts_in_what_is_made_of_it() -> None:
    used = chosen("wmpi", "nt-pair", "shared", ["allreduce 64 0 6"] * 4, sets=["coll.reduce=rabenseifner"])
    assert ("reduce", "rabenseifner") in used


def test_an_override_without_effect_is_refused() -> None:
    with refused(UsageError, "idle-override | --set | coll.alltoall"):
        simulate.run(Question("wmpi", "nt-pair", Replay(job("bcast 8 0 6", "bcast 8 0 6")), "shared", ["coll.alltoall=bruck"]))


def test_put_trees_and_shared_buffers_stay_and_can_be_replaced() -> None:
    lines = ["bcast 1048576 0 6"] * 8
    assert chosen("craympt", "cray-t3e", "distributed", lines) == {("bcast", "put_tree")}
    assert chosen("craympt:pvm", "cray-j90", "shared", lines) == {("bcast", "by_reference")}
    assert chosen("craympt", "cray-t3e", "distributed", lines, sets=["coll.bcast=scatter_ring"]) == {("bcast", "scatter_ring")}


def test_an_algorithm_for_calls_without_data_refuses_data() -> None:
    with pytest.raises(Exception, match="bcast: the algorithm 'nothing' is for calls without data"):
        ideal(["bcast 8 0 6"] * 2, algorithms={"bcast": "nothing"})


def test_every_operation_has_its_door() -> None:
    assert set(doors()) == {f"coll.{operation}" for operation in OPERATIONS}
    for operation in OPERATIONS:
        assert doors()[f"coll.{operation}"].choices == algorithms(operation)


def test_the_card_shows_the_table_with_its_sources() -> None:
    said = CliRunner().invoke(cli, ["models", "show", "nemesis", "--full", "--set", "coll.barrier=tree"])
    assert said.exit_code == 0, said.output
    assert "MPIR_BCAST_LONG_MSG" in said.output
    assert "≥" not in said.output.split("the claims cited above")[0] or "512 KiB" in said.output
    assert "(was the" in said.output  # its source: what the user replaced


# -- algorithms that know the hosts


HOSTS = [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]


@pytest.mark.parametrize("root", [0, 5, 15])
def test_a_broadcast_that_knows_the_hosts_goes_to_each_host_once(root: int) -> None:
    for name in ("nodes", "nodes_scatter"):
        case = Case("bcast", name, 16, root, size=64, hosts=HOSTS)
        flow(case)
        crossing = sum(
            step["bytes"] for me in range(16) for step in case.steps(me) if step["kind"] == "isend" and HOSTS[me] != HOSTS[step["peer"]]
        )
        # A tree: the vector to each other host. Scatter and doubling among four: 4 pieces on the tree, 3 from each member of the four.
        assert crossing == (3 * 64 if name == "nodes" else 4 * 16 + 4 * 3 * 16)


def test_a_broadcast_that_knows_the_hosts_takes_the_time_of_both_trees() -> None:
    # Two rounds between four hosts, two within each; a root that is not its host's first gives the data there first.
    assert ideal(["bcast 1000 0 6"] * 16, algorithms={"bcast": "nodes"}, hosts=HOSTS)["time_ps"] == 4 * c(1000)
    assert ideal(["bcast 1000 5 6"] * 16, algorithms={"bcast": "nodes"}, hosts=HOSTS)["time_ps"] == 5 * c(1000)


def test_reductions_and_barriers_that_know_the_hosts() -> None:
    assert ideal(["allreduce 1000 0 6"] * 16, algorithms={"allreduce": "nodes", "reduce": "nodes", "bcast": "nodes"},
                 hosts=HOSTS)["messages"] == 4 * 3 + 2 * 3 + 4 * 3
    assert ideal(["barrier"] * 16, algorithms={"barrier": "dissemination"}, hosts=HOSTS)["messages"] == 16 * 4
    for n in (1, 2, 5, 9):
        hosts = [random.Random(n).randrange(3) for _ in range(n)]
        for root in range(n):
            flow(Case("reduce", "nodes", n, root, size=9, hosts=hosts))
            flow(Case("reduce", "nodes_forward", n, root, size=9, hosts=hosts))
    # On one host member 0 has the result first; another root waits for one message more.
    forward = {"reduce": "nodes_forward"}
    there = {root: ideal([f"reduce 1000 0 {root} 6"] * 4, algorithms=forward, hosts=[0] * 4)["time_ps"] for root in (0, 3)}
    assert there == {0: 2 * c(1000), 3: 3 * c(1000)}


def test_an_algorithm_by_hosts_is_not_made_without_them() -> None:
    with pytest.raises(Exception, match="is not told them"):
        Case("bcast", "nodes", 4, size=8).steps(0)


def test_nemesis_knows_its_nodes() -> None:
    used = chosen("nemesis", "abe", [0, 0, 0, 0], ["barrier; allreduce 8 0 6; bcast 100 1 6"] * 4)
    assert {("barrier", "nodes"), ("barrier", "dissemination"), ("allreduce", "nodes"), ("bcast", "nodes")} <= used
