"""What it costs to record the critical path, on and off: executed instructions of the engine, counted by callgrind.

    python benchmarks/recording.py [ENGINE.so]      # a build of the module; default: the installed one

Prints millions of instructions that one more simulation takes: an 8-rank halo of MPICH on a switch, at mechanism level.
"""

from __future__ import annotations

import importlib.util
import os
import pickle
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any


def loaded(module: str) -> Any:
    """The engine in that file."""
    spec = importlib.util.spec_from_file_location("retrompi._engine", module)
    assert spec is not None
    assert spec.loader is not None
    engine = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(engine)
    return engine


def configuration() -> dict[str, Any]:
    """What the engine is given for the halo."""
    from retrompi.sim import simulate
    from retrompi.spec.question import Question, Replay
    from retrompi.traces import generate

    class Asked(Exception):
        """Thrown with what was to be simulated."""

    class Server:
        """Takes the configuration instead of simulating."""

        def simulate(self, rows: dict[str, Any], *_: Any) -> Any:
            raise Asked(rows)

    try:
        question = Question("mpich", "nt4-p6-200*8@switch-100", Replay(generate.halo(8, 10, 10000)), "distributed")
        simulate.run(question, server=Server())  # type: ignore[arg-type]
    except Asked as asked:
        return dict(asked.args[0])
    raise AssertionError


def simulated(module: str, rows: str, times: str) -> None:
    """Within callgrind: so many simulations."""
    engine = loaded(module)
    with open(rows, "rb") as file:
        config, image = pickle.load(file)
    trace = engine.Trace.load(image)
    for _ in range(int(times)):
        engine.simulate(config, trace, [])


def counted(module: str, rows: str, times: int) -> int:
    """Instructions of a process that simulates so many times."""
    told = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", sys.executable, __file__, "--one", module, rows, str(times)],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONHASHSEED": "0"},
    )
    count = re.search(r"Collected : (\d+)", told.stderr)
    assert count, told.stderr
    return int(count[1])


def main() -> None:
    from retrompi import _engine
    from retrompi.traces import generate

    module = sys.argv[1] if len(sys.argv) > 1 else _engine.__file__
    rows = configuration()
    image = generate.halo(8, 10, 10000).dump()
    with tempfile.TemporaryDirectory() as folder:
        for name, more in (("off", {}), ("on", {"critical_path": 1})):
            given = Path(folder) / name
            given.write_bytes(pickle.dumps((rows | more, image)))
            one, two = (counted(module, str(given), times) for times in (1, 2))
            print(f"recording {name}: {(two - one) / 1e6:.2f} M instructions")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        simulated(*sys.argv[2:5])
    else:
        main()
