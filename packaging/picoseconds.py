"""Every runtime on every platform, to the picosecond: what two builds of the engine are compared by (``make wheel-check``).

``PYTHON picoseconds.py > FILE`` runs with the retrompi of that Python and needs nothing else. A line is one run: runtime, platform, wire,
trace, outcome, time in ps, messages, packets, and the time of each mark in ps. The wire ``simgrid`` hands what crosses a network to SimGrid
itself, so that its lines compare two versions of SimGrid; those of ``native`` compare the compilers and the builds.
"""

from __future__ import annotations

import sys

from retrompi import _engine
from retrompi.base.errors import RetrompiError
from retrompi.sim import simulate
from retrompi.spec import registry
from retrompi.spec.question import Question, Replay
from retrompi.traces import generate

TRACES = {
    "pingpong": generate.pingpong([0, 1, 100, 5000, 70_000, 300_000], 3),
    "halo": generate.halo2d(2, 2, 3000, 2, periodic=True),
    "all-at-once": generate.all_at_once(2, 5000),
}


def main() -> None:
    """Print one line a run."""
    print(f"SimGrid {_engine.simgrid_version()}, {_engine.__file__}", file=sys.stderr)
    for model in registry.model_names():
        for platform in registry.platform_names():
            for name, trace in TRACES.items():
                for wire in ("native", "simgrid"):
                    try:
                        r = simulate.run(Question(model, platform, Replay(trace), idle_overrides=True, network=wire))
                    except RetrompiError as error:  # a room too small, a runtime that does not fit: also the same on both
                        print(model, platform, wire, name, "refused:", str(error).splitlines()[0])
                        continue
                    marks = " ".join(str(m["time_ps"]) for m in r.marks)
                    print(model, platform, wire, name, r.outcome, r.time_ps, r.messages, r.packets, marks)


if __name__ == "__main__":
    main()
