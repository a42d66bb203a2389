"""A run, or generated programs, by the engine and by the specification: ``python -m retrompi.reference``."""

from __future__ import annotations

import argparse
import itertools
import math
import random
import sys
from pathlib import Path

from retrompi.base.errors import RetrompiError
from retrompi.reference.compare import compare_question
from retrompi.reference.programs import compare_programs
from retrompi.reference.values import NotCovered
from retrompi.spec.question import Beside, Question, Replay
from retrompi.traces import read


def main(arguments: list[str]) -> int:
    """0: equal; 1: they differ; 2: wrong usage, or beyond the specification."""
    parser = argparse.ArgumentParser(prog="python -m retrompi.reference", description="Simulate a trace by the engine and the executable "
                                     "specification, and compare; or compare generated programs.")
    parser.add_argument("trace", nargs="?", type=Path, help="a trace; none: generated programs")
    parser.add_argument("-m", "--model", default="wmpi")
    parser.add_argument("-p", "--platform", default="nt-pair")
    parser.add_argument("--mode", default="distributed", help="placement of the ranks (retrompi replay --help)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a parameter")
    parser.add_argument("--fidelity", default="mechanism")
    parser.add_argument("--network", default="native")
    parser.add_argument("--wildcards", default="recorded")
    for option, what in (("--traffic", "cross traffic"), ("--fail", "a failure"), ("--kill", "a process that is killed")):
        parser.add_argument(option, action="append", default=[], metavar="TEXT", help=f"{what} (retrompi replay --help)")
    parser.add_argument("--seed", type=int, help="of the run's random numbers, or of the first program (default: a new one)")
    parser.add_argument("--programs", type=int, default=100, metavar="N", help="how many generated programs")
    parser.add_argument("--seconds", type=float, default=math.inf, help="processor time for them")
    given = parser.parse_args(arguments)
    try:
        if given.trace is None:
            first = random.SystemRandom().getrandbits(32) if given.seed is None else given.seed
            print(f"programs of the seeds from {first} on", flush=True)
            tally = compare_programs(itertools.count(first), given.programs, given.seconds)
            print(tally.text())
            return 1 if tally.differences else 0
        question = Question(given.model, given.platform, Replay(read(given.trace)), given.mode, given.set, seed=given.seed or 1,
                            fidelity=given.fidelity, network=given.network, wildcards=given.wildcards,
                            beside=Beside(given.traffic, given.fail, (), given.kill))
        engine, rule, what = compare_question(question)
    except NotCovered as error:
        print(f"the specification does not cover this run: {error}", file=sys.stderr)
        return 2
    except RetrompiError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"engine {engine['outcome']} {engine['time_ps']} ps, specification {rule['outcome']} {rule['time_ps']} ps: {what or 'equal'}")
    return 1 if what else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
