"""The disk replication: sizes from the paper's text, the disk's rate from the only time used for fitting."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrompi.base import units
from retrompi.base.errors import InputError
from retrompi.papers.statements.claims import Claim, find, for_fit
from retrompi.papers.statements.draw import apply_draw, factor
from retrompi.spec.question import Experiment, Question
from retrompi.store.identity import code_version, specification
from retrompi.store.lookup import facts_of

from . import _disk_replication as disk_replication
from ._disk_replication import Copy

if TYPE_CHECKING:
    from retrompi.papers.statements.draw import Draw
    from retrompi.store.database import Store

__all__ = ["FIT_FILE", "MEASURED", "Task", "calibrate", "copy", "fitted_disk", "rates", "task"]

FOLDER = Path(__file__).parents[1]
FIT_FILE = FOLDER / "replication.fit.toml"
MEASURED = "myrinet"
"""The network of the published time used for fitting."""
_DATA = FOLDER / "replication.toml"
MB = 1e6


@dataclass(frozen=True)
class Task:
    """The replication: ``chunks`` of ``chunk`` bytes to ``machines``; ``extra_s`` for editing the registry; ``buffers`` per machine."""

    chunks: int
    chunk: float
    machines: int
    extra_s: float
    buffers: int


@cache
def task() -> Task:
    """The published replication: sizes and machines from the text of the claims, the rest from ``replication.toml``."""
    told = find("LW-R-06").configuration
    size, machines = re.search(r"([\d.]+) GB", told), re.search(r"-> (\d+) slaves", told)
    chunk = find("LW-R-05").low
    if size is None or machines is None or chunk is None:
        raise InputError("LW-R-05 and LW-R-06 no longer say how much is copied, and to how many machines")
    more = tomllib.loads(_DATA.read_text(encoding="utf-8"))
    edit = units.parse(more["registry_edit"]["value"], "s")
    return Task(round(float(size[1]) * 1e3 / chunk), chunk * MB, int(machines[1]), edit, int(more["buffers"]["value"]))


def copy(disk: float, network: float) -> Copy:
    """The published task with these rates, bytes/s."""
    t = task()
    return Copy(t.chunks, t.chunk, disk, network, t.extra_s, t.buffers)


def rates(
    store: Store, network: str, platform: str, *, fresh: bool = False, draw: Draw | None = None
) -> tuple[int, dict[str, Any], bool]:
    """(run id, facts, found): simulated TCP rates, bytes/s, through a ``relay`` and to a machine that only receives (``one_way``)."""
    t = task()
    fixed = dict(disk_replication.NETWORKS[network].sets)
    made = {"network": fixed, "chunk": t.chunk, "chunks": disk_replication.RELAYED}
    question = Question("sockets", platform, Experiment.of("replication", f"relay on {network}", made), overrides=fixed)
    sets = {k: v for k, v in apply_draw(draw, question).sets.items() if k not in fixed}  # what the network is made of is not drawn

    def work() -> dict[str, Any]:
        told = tuple(f"{k}={v}" for k, v in sets.items())
        relay, one_way = (disk_replication.network_rate(network, platform, int(t.chunk), relayed=r, sets=told) for r in (True, False))
        return {"relay": relay, "one_way": one_way}

    spec = specification(replace(question, overrides=sets, idle_overrides=bool(sets)))
    run_id, facts, found = facts_of(store, spec, work, fresh=fresh)
    if draw is not None:
        slower = factor(draw, question)
        facts |= {k: facts[k] / slower for k in ("relay", "one_way")}
    return run_id, facts, found


def _for_fit(claim_id: str) -> Claim:
    """A claim marked for calibration; InputError for any other."""
    for claim in for_fit("sockets"):
        if claim.id == claim_id:
            return claim
    raise InputError(f"{claim_id} is marked {find(claim_id).use}: no fit may see it", code="held-out")


def calibrate(store: Store, platform: str, *, write: bool = True) -> dict[str, Any]:
    """Fit the disk's rate to the published time on Myrinet, inside the published range of disks, and ``write`` the fit file.

    Returns disk (B/s), low, high, time_s (simulated with it), published_s, claims. Uses LW-R-01 and LW-R-06 only.
    """
    disks, goal = _for_fit("LW-R-01"), _for_fit("LW-R-06")
    assert disks.low is not None
    assert disks.high is not None
    assert goal.low is not None
    low, high = disks.low * MB, disks.high * MB
    network = float(rates(store, MEASURED, platform)[1]["relay"])
    machines = task().machines

    def time_of(disk: float) -> float:
        return disk_replication.simulate_chain(copy(disk, network), machines)

    a, b = low, high  # time falls with the disk's rate
    for _ in range(40):
        middle = (a + b) / 2
        a, b = (middle, b) if time_of(middle) > goal.low else (a, middle)
    disk = (a + b) / 2
    error = time_of(disk) / goal.low - 1
    if write:
        FIT_FILE.write_text(
            "# Made by 'retrompi paper replicate --fit'; do not edit.\n\n"
            f'date = "{date.today().isoformat()}"\ncode = "{code_version()}"\nplatform = "{platform}"\n\n'
            f'[fit]\ndisk = "{disk / MB:.5g} MB/s"\nlow = "{disks.low:g} MB/s"\nhigh = "{disks.high:g} MB/s"\n'
            f"error = {error:.2g}\n"
            f'claims = ["{disks.id}", "{goal.id}"]\n',
            encoding="utf-8",
        )
    told = {"time_s": goal.low * (1 + error), "published_s": goal.low, "claims": [disks.id, goal.id]}
    return {"disk": disk, "low": low, "high": high, **told}


def fitted_disk() -> float:
    """The fitted rate of the disks, bytes/s; InputError if there is no fit yet."""
    try:
        return units.parse(tomllib.loads(FIT_FILE.read_text(encoding="utf-8"))["fit"]["disk"], "B/s")
    except (OSError, tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        again = "make it with 'retrompi paper replicate --fit'"
        raise InputError(f"no usable fit of the disks: {error}; {again}", FIT_FILE, code="unreadable-file") from None


def without_extra(one: Copy) -> Copy:
    """The copy without the extra time."""
    return replace(one, extra_s=0.0)
