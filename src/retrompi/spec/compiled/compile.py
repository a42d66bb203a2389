"""Compiling a model's parameters to the engine's channel specifications, part by part, recording which parameters a run uses.

A run does not need every part of a runtime: two ranks on one host never use its daemons. A model therefore declares its parts separately
(`RuntimeModel.calls`, `within_host`, `between_hosts`, ...); only those the run needs are compiled, and the parameters they read are
those the run uses. An override of any other parameter has no effect and is refused with the reason.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from retrompi.base.errors import InputError, RetrompiError, UsageError
from retrompi.spec.collectives import PREFIX, engine_rows
from retrompi.spec.compiled import compiled_values, platform_use
from retrompi.spec.declare.calls import ANYTHING, Calls
from retrompi.spec.hosts import EVERY_HOST
from retrompi.spec.layout import Layout
from retrompi.spec.model import model_values
from retrompi.spec.runtime.users_code import users_code

if TYPE_CHECKING:
    from retrompi.spec.model import RuntimeModel
    from retrompi.spec.values import Values

__all__ = ["PARTS", "Compiled", "Part", "compile_runtime", "needed_parts", "refuse", "unused_by_start", "unused_overrides",
           "unused_parameters"]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a runtime: what its parameters belong to, and why a run may not need it (both for messages)."""

    belongs_to: str
    not_needed: str


PARTS = {
    "calls": Part("every call", ""),
    "within_host": Part("the path between ranks of one machine", "every rank of this run has a machine of its own"),
    "between_hosts": Part("the path between machines", "this run is on one machine"),
    "probing": Part("calls that look for a message or a completion (MPI_Test, MPI_Probe)", "the trace has none"),
    "one_sided": Part("one-sided operations", "the trace has none"),
    "conversion": Part("the conversion between byte orders", "the machines of this run have the same byte order"),
    "start_up": Part("starting a job", "this run does not simulate it (replay --startup and the command startup do)"),
}
"""The parts of a runtime, in the order of compilation."""


@dataclass(frozen=True)
class Compiled:
    """A runtime on a platform, compiled for the engine.

    ``rows``: the channel specifications and other settings of the engine; ``used``: names of the
    model's parameters (``wmpi.packet``) and of the platform's values (``platform.server.quantum``) in the form of ``--set``.
    """

    rows: dict[str, Any]
    used: frozenset[str]
    layout: Layout = field(repr=False)


def needed_parts(cls: type[RuntimeModel], layout: Layout, calls: Calls) -> frozenset[str]:
    """The parts of `PARTS` that a run needs."""
    there = {
        "calls": True,
        "within_host": layout.shares_host or calls.to_self,
        "between_hosts": layout.several_hosts,
        "probing": calls.probing,
        "one_sided": calls.one_sided or (cls.puts_in_collectives and calls.collective),
        "conversion": layout.mixed_byte_order,
        "start_up": calls.start_up,
    }
    return frozenset(part for part, yes in there.items() if yes)


def compile_runtime(cls: type[RuntimeModel], values: Values, layout: Layout, calls: Calls = ANYTHING) -> Compiled:
    """The runtime ``cls`` with the parameters ``values``, compiled for the ranks of ``layout`` and a program that makes ``calls``.

    Only the parts that the run needs are compiled. Raises UsageError for inconsistent values; it begins with the override that is to blame.
    """
    try:
        return _compile(cls, values, layout, calls)
    except InputError as error:
        name = _to_blame(cls, values, layout, calls) if error.code in ("out-of-range", "bad-value") else ""
        if not name:
            raise
        told = f"{values.model.partition(':')[0]}.{name}={values.settings[name].text} cannot be: {error.message}"
        if isinstance(error.__cause__ or error.__context__, ZeroDivisionError):
            told += "; it must be more than zero"
        raise UsageError(told, code=error.code) from None


def _to_blame(cls: type[RuntimeModel], values: Values, layout: Layout, calls: Calls) -> str:
    """The override without which the runtime can be compiled; "" if there is none or if it takes several."""
    for name in values.overridden():
        try:
            _compile(cls, values.without(name, model_values(cls)), layout, calls)
        except RetrompiError:
            continue
        return name
    return ""


def _compile(cls: type[RuntimeModel], values: Values, layout: Layout, calls: Calls) -> Compiled:
    parts = needed_parts(cls, layout, calls)
    with users_code(cls.folder()):
        rows = cls().compile(values, layout, parts)
        compiled_values.check(cls, rows)
        rows["collectives"] = engine_rows(cls.collectives, values, rows["bcast"]["algorithm"])
    compiled_values.check_progress(rows)
    rows |= {"context_bytes": cls.communicators.context_bytes, "split_gathers": cls.communicators.gathers}
    if "start_up" in parts:
        _start(cls, values, layout)
    base = values.model.partition(":")[0]
    with users_code(cls.folder(), "this model returns a value of a wrong type"):
        used = platform_use.used_paths(layout, rows, calls)
    return Compiled(rows, frozenset({f"{base}.{name}" for name in values.read()} | used), layout)


def _start(cls: type[RuntimeModel], values: Values, layout: Layout) -> None:
    """Records the parameters read by starting a job."""
    with values.reading("start_up"), users_code(cls.folder()):
        cls().startup(values, layout.platform, layout.placement, Random(0))


def unused_overrides(
    cls: type[RuntimeModel], values: Values, found: Compiled, calls: Calls, others: Iterable[Compiled] = ()
) -> dict[str, str]:
    """Full name of every override that a run does not use -> the reason, as one line.

    ``found`` was compiled from ``values``; platform values used by the further jobs ``others`` count as used. Collective algorithms are
    not checked here: which operations run is known only afterwards.
    """
    lines = unused_parameters(cls, values, found, calls)
    layout, used = found.layout, found.used.union(*(o.used for o in others))
    by_key: dict[str, list[str]] = {}
    for path in sorted(layout.platform.overridden):
        owner, _, key = path.rpartition(".")
        by_key.setdefault(path if owner == "link" else key, []).append(path)
    for key, paths in by_key.items():
        # platform.host.KEY sets every host: one that uses the key is enough.
        if not any(_uses(layout, used, p) for p in paths):
            mine = [p for p in paths if layout.runs(p.rpartition(".")[0])] or paths
            name = f"platform.host.{key}" if len(paths) == len(layout.platform.hosts) > 1 else f"platform.{mine[0]}"
            lines[name] = f"{name} {platform_use.why_not(mine[0], layout)}"
    return lines


def _uses(layout: Layout, used: Collection[str], path: str) -> bool:
    """Whether a run with the values ``used`` uses that of the platform at ``path``, or one that followed it."""
    each = [path, *(mine for mine, base in layout.platform.followed.items() if base == path)]
    return any(f"platform.{p}" in used or (f"platform.{EVERY_HOST}.{key}" in used and layout.runs(owner))
               for p in each for owner, _, key in [p.rpartition(".")])


def unused_parameters(cls: type[RuntimeModel], values: Values, found: Compiled, calls: Calls) -> dict[str, str]:
    """`unused_overrides` for the parameters of the model only (a further job cannot override the platform)."""
    base = values.model.partition(":")[0]
    names = [n for n in values.overridden() if f"{base}.{n}" not in found.used and not n.startswith(PREFIX)]
    return {f"{base}.{n}": f"{base}.{n} {_why(cls, values, n, found.layout, calls)}" for n in names}


def unused_by_start(cls: type[RuntimeModel], values: Values, layout: Layout) -> dict[str, str]:
    """`unused_overrides` for a run that only starts a job: a start has steps but no messages."""
    again = values.fresh()
    _start(cls, again, layout)
    base = values.model.partition(":")[0]
    names = [f"{base}.{n}" for n in again.overridden() if n not in again.read()]
    names += [f"platform.{path}" for path in sorted(layout.platform.overridden)]
    return {n: f"{n} is not used; starting a job sends no messages" for n in names}


def refuse(lines: Mapping[str, str]) -> None:
    """Raises UsageError with the first of the ``lines`` returned by `unused_overrides`, if any."""
    for line in lines.values():
        raise UsageError(line, code="idle-override")


def _why(cls: type[RuntimeModel], values: Values, name: str, layout: Layout, calls: Calls) -> str:
    parts = needed_parts(cls, layout, calls)
    read = _readers(cls, values, name, layout)
    if read and not read & parts:
        part = PARTS[next(p for p in PARTS if p in read)]
        return f"belongs to {part.belongs_to}; {part.not_needed}"
    found = _choice_that_uses(cls, values, name, layout, parts)
    if found:
        return f"is not used with {found[0]}; it is with {found[1]}"
    return f"is not used by {values.model} with the other values of this run"


def _readers(cls: type[RuntimeModel], values: Values, name: str, layout: Layout) -> set[str]:
    """The parts that read a parameter in a run with ranks both on one host and on several."""
    hosts = len(layout.platform.hosts)
    everywhere = layout if hosts < 2 else Layout(layout.platform, [0, 0, *range(1, hosts)])
    again = values.fresh()
    with users_code(cls.folder()):
        cls().compile(again, everywhere, frozenset(PARTS))
    _start(cls, again, everywhere)
    return again.readers(name)


def _choice_that_uses(
    cls: type[RuntimeModel], values: Values, name: str, layout: Layout, parts: frozenset[str]
) -> tuple[str, str] | None:
    """(choice in force, alternative with which the run would use the parameter), as ``NAME=VALUE``; None if there is none."""
    base = cls.name.partition(":")[0]
    for other, param in cls.params().items():
        now = values.settings[other].value
        for choice in param.choices or ():
            tried = values.fresh({other: choice})
            try:
                with users_code(cls.folder()):
                    cls().compile(tried, layout, parts)
            except (RetrompiError, ValueError):
                continue
            if choice != now and name in tried.read():
                return f"{base}.{other}={now}", f"{base}.{other}={choice}"
    return None
