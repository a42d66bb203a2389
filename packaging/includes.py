"""Checks who includes whom in the engine: a part those below it in `LAYERS` alone, and no files each other in a circle.

Forward declarations are not followed: what is only named is opaque there.
"""

from __future__ import annotations

import graphlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ENGINE = ROOT / "src" / "retrompi" / "engine"
LAYERS = ("event", "trace", "record", "host", "network", "channel", "coll", "mpi", "diagnosis", "sim", "bind")
"""The engine's folders from below."""
_GENERATED = {"generated/calls.hpp": "trace", "generated/specs.hpp": "host"}
"""What is generated: the operations of a trace, and hosts, link, media and results, with the layer of the costs that they declare."""


def climbing(engine: Path = ENGINE) -> Iterator[str]:
    """Every include of a part that is not below the file's own, and every folder that has no layer, as a line."""
    level = {name: i for i, name in enumerate(LAYERS)}
    for file in sorted(engine.rglob("*.?pp")):
        own, place = file.relative_to(engine).parts[0], file.relative_to(engine).as_posix()
        if own == "generated":
            continue
        if own not in level:
            yield f"{place}: '{own}' has no layer; valid: {', '.join(LAYERS)}"
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            included = re.match(r'#include "(([^/"]+)/[^"]*)"', line)
            part = _GENERATED.get(included[1], included[2]) if included else own
            if part not in level:
                yield f"{place}:{number}: '{part}' is no part of the engine"
            elif level[part] > level[own]:
                yield f"{place}:{number}: {own} includes {part}, which is above it"


def circle(engine: Path = ENGINE) -> list[str]:
    """Files that include each other in a circle, the first one again at the end; empty when there are none."""
    includes = {
        file.relative_to(engine).as_posix(): re.findall(r'^#include "([^"]+)"', file.read_text(encoding="utf-8"), re.MULTILINE)
        for file in engine.rglob("*.?pp")
    }
    try:
        graphlib.TopologicalSorter(includes).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def main() -> int:
    """Say what is wrong; exit code 1 when something is."""
    found = list(climbing())
    if files := circle():
        found.append("files include each other: " + ", ".join(files))
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
