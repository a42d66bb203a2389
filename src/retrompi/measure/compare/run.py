"""Running a program on several backends for a comparison, and rebuilding a comparison from the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from retrompi.base.errors import UsageError, nearest
from retrompi.measure import launch
from retrompi.measure.compare.comparison import Comparison, build
from retrompi.measure.compare.seen import NOTHING_SEEN, Seen, seen_by
from retrompi.measure.launch.execution import BACKENDS, Execution
from retrompi.sim.resolved import place
from retrompi.spec import registry

if TYPE_CHECKING:
    from retrompi.store.database import Store

__all__ = ["choose_backends", "compare", "from_store", "hashes_of"]

Report = Callable[[int, int, str], None]


def _quiet(done: int, total: int, what: str = "") -> None:
    """A progress callback that does nothing."""


def choose_backends(backends: Sequence[str], model: str | None) -> tuple[str, ...]:
    """The backends in execution order. Raises UsageError for a wrong name, fewer than two, or a missing model."""
    for name in backends:
        if name not in BACKENDS:
            raise UsageError(f"no backend '{name}'{nearest(name, BACKENDS)}", code="unknown-name")
    out = tuple(b for b in BACKENDS if b in backends)
    if len(out) < 2:
        raise UsageError(
            f"one backend ({', '.join(out) or 'none'}) is not a comparison; 'retrompi run --backend' runs one", code="missing-option"
        )
    if model is None:
        raise UsageError("a comparison needs --model NAME: what smpi and model simulate", code="missing-option")
    return out


def compare(
    store: Store,
    program: str,
    arguments: Sequence[str] = (),
    ranks: int = 2,
    *,
    model: str | None = None,
    platform: str | None = None,
    mode: str | None = None,
    backends: Sequence[str] = BACKENDS,
    trace_from: str | None = None,
    report: Report = _quiet,
    **options: Any,
) -> Comparison:
    """Run ``program`` on each of ``backends`` and compare the runs, which are all stored.

    The model replays the trace recorded in the native run, or with ``trace_from`` "smpi" (the default without a native run) that of the
    comparison's online run. ``options`` are those of `retrompi.measure.launch.run`. Raises what it raises.
    """
    wanted = choose_backends(backends, model)
    source = trace_from or ("native" if "native" in wanted else "smpi")
    if source not in wanted:
        raise UsageError(f"--trace-from {source}, but {source} is not among the backends {','.join(wanted)}", code="missing-option")
    # SMPI runs the curve sampled from the mechanism, so the model does too in their comparison, unless their difference is asked for.
    fidelity = options.get("fidelity") or ("curve" if "smpi" in wanted else "mechanism")
    if mode is None and "native" in wanted:
        mode = "shared"  # where the ranks are natively
    simulated: dict[str, Any] = {"model": model, "platform": platform, "mode": mode, "fidelity": fidelity}
    simulated |= {k: v for k in ("set", "seed", "fresh", "timeout_s", "time_limit", "bounds") if (v := options.get(k)) is not None}
    keys = ("mpi", "repetitions", "warmup", "wait_quiet_s", "timeout_s", "bounds")
    native: dict[str, Any] = {k: v for k in keys if (v := options.get(k)) is not None}
    if "native" in wanted and ranks > 1:
        native["odd_state"] = seen_by(str(model)).odd_state
    done: list[Execution] = []
    for i, backend in enumerate(wanted):
        report(i, len(wanted), backend)
        given = dict(native) if backend == "native" else dict(simulated)
        if backend == "model":
            given |= {"mpi": options.get("mpi")}
            if source == "smpi":
                online = next(e for e in done if e.backend == "smpi")
                if not online.completed:
                    done.append(_not_replayed(online, fidelity))
                    continue
                given["trace"] = online.trace
        done.append(launch.run(store, backend, program, arguments, ranks, **given))
    report(len(wanted), len(wanted), "")
    return build(done, _seen_by_fit(done))


def _not_replayed(online: Execution, fidelity: str) -> Execution:
    """The model's part where the program did not complete on SMPI: the trace ends there too, and its replay would deadlock."""
    return Execution(
        "model", online.program, online.arguments, online.ranks, model=online.model, platform=online.platform, mode=online.mode,
        fidelity=fidelity, outcome=online.outcome, detail=online.detail, exit_code=online.exit_code,
        notes=["its trace ends where the run on SMPI ended, and was not replayed"],
    )


def _seen_by_fit(executions: Sequence[Execution]) -> Seen:
    """The messages that the simulated model's fit used, for the kinds of pairs in the ranks' placement."""
    simulated = next((e for e in reversed(executions) if e.model), None)
    if simulated is None:
        return NOTHING_SEEN
    remote = None
    if simulated.platform:
        platform = registry.platform(simulated.platform)
        where = place(platform, _mode(simulated.mode), simulated.ranks)
        remote = len(set(where)) > 1 if simulated.ranks == 2 else None
    return seen_by(simulated.model, remote=remote)


def _mode(text: str) -> Any:
    """A mode as stored: a name, or a list of hosts."""
    return [int(i) for i in text.split(",")] if text and all(i.strip().isdecimal() for i in text.split(",")) else text or "distributed"


def from_store(store: Store, run_ids: Sequence[int]) -> Comparison:
    """The comparison of stored runs. Raises UsageError for runs that are not executions of one program."""
    found = [launch.load(store, i) for i in run_ids]
    programs = {(e.program, tuple(e.arguments)) for e in found}
    if len({(p.rpartition("/")[2], a) for p, a in programs}) > 1:
        told = " and ".join(sorted(" ".join([p, *a]) for p, a in programs))
        raise UsageError(f"these runs are of different programs: {told}", code="unused-option")
    return build(found, _seen_by_fit(found))


def hashes_of(store: Store, c: Comparison) -> dict[str, str]:
    """Backend -> hash of the model it ran, from its stored run."""
    return {b: str(store.run(e.run_id)["model_hash"]) for b, e in c.executions.items() if e.run_id is not None and e.model}
