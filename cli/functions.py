"""Each command beside its function in Python; one without says why. `help(retrompi)` and the commands' pages show this table."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["ALONE", "FUNCTIONS", "in_python", "table"]

FUNCTIONS: Mapping[str, tuple[str, ...]] = {
    "pingpong": ("pingpong",),
    "replay": ("replay",),
    "run": ("run",),
    "compare": ("compare", "compare_runtimes"),
    "explain": ("message", "Curve.anatomy"),
    "why": ("Curve.path", "Run.path", "CriticalPath.difference"),
    "sweep": ("sweep",),
    "study": ("study",),
    "tornado": ("tornado",),
    "break-even": ("break_even",),
    "tolerance": ("tolerance",),
    "optimise": ("optimise",),
    "reproduce": ("reproduce",),
    "validate": ("verdicts",),
    "claims": ("claims", "claim"),
    "transfer": ("transfer",),
    "predict": ("predict",),
    "trace": ("record",),
    "measured": ("import_measured", "list_measured", "measured_curve"),
    "calibrate": ("calibrate",),
    "models": ("list_models", "model"),
    "platforms": ("list_platforms", "platform"),
    "runs": ("open_store",),
}
"""Command -> names in the package ``retrompi``."""

ALONE: Mapping[str, str] = {
    "startup": "a table of the models' own words; --json has it",
    "timeline": "writes a file from a stored run",
    "fidelity": "the option fidelity= of pingpong, message and replay",
    "diff": "two results' rows, side by side in pandas",
    "share": "a table of several jobs at once; --json has it",
    "lmbench": "a table of a simulated host; --json has it",
    "paper": "makes and checks files; validate and reproduce take its folder",
    "crate": "packs files, and verifies them",
    "explore": "a search of its own without a store; --json has its result",
    "smpi": "writes files for SimGrid",
    "posterior": "writes the draws beside a fit, which uncertainty() reads",
    "fit": "writes a model's folder, whose name pingpong and the others take",
    "scenarios": "lists the names that sweep, tornado and the others take",
    "studio": "serves pages",
    "lab": "works in a folder",
    "course": "serves pages, and keeps a class",
    "completion": "of the shell",
}
"""Command without a function -> why."""


def in_python(command: str) -> str:
    """The functions of a command, or why there is none."""
    names = FUNCTIONS.get(command)
    return ", ".join(names) if names else f"- ({ALONE[command]})"


def table() -> str:
    """A line for each command, in the order of ``retrompi --help``."""
    from retrompi.cli.main import COMMANDS

    widest = max(map(len, COMMANDS))
    return "\n".join(f"    {name.ljust(widest)}  {in_python(name)}" for name in COMMANDS)
