"""The runs of ``data/store-0006.sql``, a store that retrompi made before it kept questions, by their tags; and how it was made."""

from __future__ import annotations

from pathlib import Path

from retrompi.spec.conditions.cojobs import JobSpec
from retrompi.spec.conditions.timed_section import Program
from retrompi.spec.question import Benchmark, Beside, Message, Question, Replay, Starts, pingpong
from retrompi.studies.define import case, catalogue
from retrompi.traces import generate

SQL = Path(__file__).parent / "data" / "store-0006.sql"


def questions() -> dict[str, Question]:
    """Tag -> question. Every field of a question is in one of them."""
    ring, halo = generate.ring(4, 64, 2), generate.halo2d(2, 2, 64, 2, flops=1e5)
    curve = Question("wmpi", "nt-pair", pingpong([0, 1024], 3), "shared")
    replay = Question("wmpi", "nt-cluster", Replay(ring, "ring"), "distributed")
    job = JobSpec("wmpi", generate.ring(2, 64, 2), [2, 2], {"wmpi.packet": "32KiB"}, 0.001, True, 0.25, "other", "ring")
    reps = {"sizes": "0,1KiB", "reps": "2", "seed": "5"}
    return {
        "curve": curve,
        "overrides": curve.with_(overrides=["wmpi.packet=64KiB", "platform.host.quantum=x0.5"], seed=7, workload=pingpong([8], 2, 1)),
        "benchmark": Question("sockets", "nt-pair", Benchmark("osu_latency", {"sizes": [8]}), "distributed"),
        "message": Question("wmpi", "nt-pair", Message(1024), "shared"),
        "starts": Question("wmpi", "nt-pair", Starts(2, 3), "shared"),
        "killed": replay.with_(beside=Beside(kills=["rank 1@0.1ms"])),
        "beside": replay.with_(beside=Beside(["any 1Mbps 100B"], ["hub@1s"], [job])),
        "free": replay.with_(wildcards="free", order=((0, 2), (1, 1)), limit_s=3.0, start_up=True, cores=(0, 0, 0, 0),
                             workload=Replay(ring, "ring", Program(memory_share=0.5))),
        "kernel": replay.with_(workload=Replay(halo, "halo"), compute_kernel="daxpy", network="fluid", placement=[0, 1, 2, 0]),
        "section": replay.with_(workload=Replay(halo, "halo", Program("2-3", 0.5))),
        "coarse": curve.with_(fidelity="curve", workload=pingpong([8], 2)),
        "scenario": case.apply(catalogue.scenario("bf-wmpi-shared"), reps).question(),
        "sharing": case.apply(catalogue.scenario("two-jobs-on-a-hub"), {"seed": "3"}).question(),
    }
