"""What a lab's reference.py simulates with. Everything goes through the store, so that what a student ran is found and not run again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrompi.store import lookup as experiment

if TYPE_CHECKING:
    from retrompi._engine import Trace
    from retrompi.store import Store

__all__ = ["Bench", "Curve", "Line", "hockney", "most", "options"]


@dataclass(frozen=True)
class Line:
    """A curve that the report draws: what `Bench.curve` takes, and how it is called."""

    label: str
    model: str
    mode: str = "shared"
    sizes: Sequence[int] = ()
    sets: Mapping[str, str] = field(default_factory=dict)
    platform: str = "nt-pair"
    reps: int | None = None


class Curve(Mapping[int, float]):
    """A PingPong: size in bytes -> one-way time in seconds, smallest size first."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.rows = [dict(r) for r in rows]
        self._times = {int(r["size_B"]): float(r["time_us"]) * 1e-6 for r in rows}

    def __getitem__(self, size: int) -> float:
        return self._times[int(size)]

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._times))

    def __len__(self) -> int:
        return len(self._times)

    def rate(self, size: int) -> float:
        """Bandwidth at ``size``, B/s: size over one-way time."""
        return size / self[size]

    def peak(self) -> float:
        """The largest bandwidth of all sizes, B/s."""
        return max(self.rate(s) for s in self if s)

    def peak_size(self) -> int:
        """The size of the largest bandwidth, B."""
        return max((s for s in self if s), key=self.rate)


def most(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The largest whole number in ``low .. high`` for which ``holds`` is true, by bisection; ``low`` holds and ``high`` does not."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def options(sets: Mapping[str, str]) -> str:
    """Overrides as options of a command."""
    return " ".join(f"--set {key}={value.replace(' ', '')}" for key, value in sets.items())


def hockney(n1: float, t1: float, n2: float, t2: float) -> tuple[float, float, float]:
    """Hockney's line T(n) = t0 + n / r through two points: (t0 in s, r in B/s, N½ = t0 r in B)."""
    rate = (n2 - n1) / (t2 - t1)
    t0 = t1 - n1 / rate
    return t0, rate, t0 * rate


class Bench:
    """Simulations for one student's lab. ``folder`` is the student's, or None when there is none.

    ``may_run`` says whether programs in that folder may be compiled and run: they may in the student's own check, and a teacher who
    collects says so (``--run-programs``), since they are somebody else's code.
    """

    def __init__(self, store: Store, folder: Path | None = None, may_run: bool = False) -> None:
        self.store, self.folder, self.may_run = store, folder, may_run
        self._known: dict[Any, Any] = {}

    def once(self, key: Any, work: Callable[[], Any]) -> Any:
        """What ``work`` gives, computed once for ``key``."""
        if key not in self._known:
            self._known[key] = work()
        return self._known[key]

    def curve(
        self, model: str, mode: str = "shared", sizes: Sequence[int] | None = None, *, platform: str = "nt-pair",
        sets: Mapping[str, str] | None = None, reps: int | None = None, seed: int = 1, traffic: Sequence[str] = (),
        failures: Sequence[str] = (),
    ) -> Curve:  # fmt: skip
        """The PingPong that ``retrompi pingpong`` runs: `Curve`. Raises what `experiment.pingpong` raises."""
        given = dict(sets or {})
        key = ("curve", model, platform, mode, tuple(sizes or ()), tuple(given.items()), reps, seed, tuple(traffic), tuple(failures))
        return Curve(
            self.once(
                key, lambda: experiment.pingpong(self.store, model, platform, mode, sizes, sets=given, reps=reps, seed=seed,
                                                 traffic=traffic, failures=failures).rows,
            )
        )  # fmt: skip

    def anatomy(
        self, model: str, mode: str, size: int, *, platform: str = "nt-pair", sets: Mapping[str, str] | None = None
    ) -> list[dict[str, Any]]:
        """Where one message's time goes, as ``retrompi explain`` says: rows stage, process, seconds."""
        given = dict(sets or {})
        rows: list[dict[str, Any]] = self.once(
            ("anatomy", model, platform, mode, size, tuple(given.items())),
            lambda: experiment.explain(self.store, model, platform, mode, size, sets=given).rows,
        )
        return rows

    def replay(
        self, trace: Trace, label: str, model: str, mode: str = "shared", *, platform: str = "nt-pair",
        sets: Mapping[str, str] | None = None, seed: int = 1, failures: Sequence[str] = (),
    ) -> dict[str, Any]:  # fmt: skip
        """The stored run of a trace, as ``retrompi replay`` makes it: outcome, time_s, detail, facts ... whether it completed or not."""
        given = dict(sets or {})
        key = ("replay", trace.sha256, model, platform, mode, tuple(given.items()), seed, tuple(failures))
        row: dict[str, Any] = self.once(
            key, lambda: self.store.run(experiment.replay(self.store, trace, label, model, platform, mode, sets=given, seed=seed,
                                                          failures=failures).run_id),
        )  # fmt: skip
        return row

    def generated(self, generator: str, args: Mapping[str, Any], model: str, mode: str = "shared", **options: Any) -> dict[str, Any]:
        """`replay` of what a trace generator makes."""
        from retrompi.traces import generate

        return self.replay(generate.made(generator, args), generator, model, mode, **options)

    def run(self, run_id: int) -> dict[str, Any]:
        """A stored run's row, with its facts."""
        return self.store.run(run_id)
