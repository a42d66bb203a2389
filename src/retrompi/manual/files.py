"""Files, units and exit codes: the keys that the readers accept, taken from the readers themselves."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from retrompi.base import errors, units
from retrompi.manual.markdown import ManualPage, escape, table
from retrompi.papers.judging import evidence
from retrompi.papers.judging.evaluators import EVALUATORS
from retrompi.papers.judging.findings import UNITS
from retrompi.papers.statements import claims, curves
from retrompi.papers.statements.paper import keys
from retrompi.spec.collectives import OPERATIONS, algorithms
from retrompi.spec.declare.fields import Field, quantities
from retrompi.spec.host import Host
from retrompi.spec.machine import topology
from retrompi.spec.machine.link import Link
from retrompi.studies.define import metrics, scenario
from retrompi.studies.execute import design
from retrompi.traces.generate import GENERATORS

__all__ = ["file_pages"]


def _example(module: Any) -> str:
    """The TOML example in a reader's own docstring, below its first paragraph."""
    text = inspect.cleandoc(module.__doc__ or "").partition("\n\n")[2]
    lines = [line.removeprefix("    ") if line.startswith("    ") else line for line in text.splitlines()]
    kept = [line for line in lines if not line or line[0] in "[#" or " = " in line or line[0] in ' "]']
    return "\n".join(kept).strip()


def _toml(text: str) -> str:
    return f"```toml\n{text}\n```"


def _keys(names: Any) -> str:
    return ", ".join(f"`{n}`" for n in names)


def _quantities(keys: Mapping[str, Field]) -> str:
    rows = [[f"`{k}`", escape(f.unit), escape(f.bounds), escape(f.help)] for k, f in keys.items()]
    return table(["key", "unit", "values", "what it is"], rows)


def _widest() -> str:
    rows = [[escape(unit if unit != "1" else "plain number"), f"{low:g}" if low else "0", f"{high:g}"]
            for unit, (low, high) in units.WIDEST.items()]
    return table(["unit", "least above zero", "most"], rows)


def _generators() -> str:
    rows = []
    for name, g in GENERATORS.items():
        arguments = [
            n if p.default is p.empty else f"{n}={p.default}" if p.default is not None else f"[{n}]" for n, p in g.arguments.items()
        ]
        about = (inspect.getdoc(g.make) or "").partition("\n")[0]
        rows.append([f"`{name}`", f"`{', '.join(arguments)}`", escape(about), escape(g.rule)])
    return table(["generator", "arguments", "what it is", "what a rate counts"], rows)


def _errors() -> str:
    rows = [["0", "done"], ["1", "a negative outcome: a statement fails, a run does not complete, a bound is exceeded"]]
    for code in (2, 3):
        kinds = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, errors.RetrompiError) and c.exit_code == code
                 and c is not errors.RetrompiError]
        what = {2: "wrong usage or input", 3: "a defect of retrompi"}[code]
        rows.append([str(code), f"{what}: " + " ".join((inspect.getdoc(c) or c.__name__).partition("\n")[0] for c in kinds)])
    rows.append(["130", "interrupted: Ctrl-C, SIGTERM, SIGHUP"])
    return table(["code", "meaning"], [[a, escape(b)] for a, b in rows])


def _units() -> str:
    rows = []
    for base, spellings in units.UNITS.items():
        factors = ", ".join(
            f"`{s}`" + (f" = {f:.12g}" if f not in (1, 1.0) else "") for s, f in spellings.items() if s and s[0] not in "µμ"
        )
        rows.append([f"`{base}`", factors or "a plain number"])
    return table(["base unit", "spellings, in base units"], rows)


def file_pages() -> list[ManualPage]:
    """One page: the keys of scenario, study, platform and evidence files; generators, metrics, collectives; units; exit codes."""
    algos = [[f"`coll.{op}`", ", ".join(f"`{a}`" for a in algorithms(op))] for op in OPERATIONS]
    out = [
        "# Files, units, exit codes",
        "Generated from the readers: everything they accept is listed here; anything else is an error with file and line.",
        "## Scenario { #scenario }",
        _toml(_example(scenario)),
        f"Every key: {_keys(scenario.KEYS)}; of a `[[job]]`: {_keys(scenario.JOB_KEYS)}; of a `[trace]` with a file: "
        f"{_keys(scenario.FILE_KEYS)}. Outcomes: {_keys(scenario.OUTCOMES)}. [The scenarios](scenarios/index.md).",
        "### Generators",
        _generators(),
        "## Study { #study }",
        f"Every key: {_keys(design.KEYS)}. Sampling: {_keys(design.SAMPLINGS)}. A walk through one: [Studies](../studies.md).",
        table(["`metric`", "what it is"], [[f"`{k}`", escape(v)] for k, v in metrics.NAMES.items()]),
        "## Platform { #platform }",
        f"`name`, `title`, `years`, `summary`; a `[[host]]` each with `name`, `os`, `byte_order` and the keys below; one `[link]` with "
        f"`kind` ({_keys(topology.KINDS)}). A number is a table `{{ value = \"10 ms\", source = \"doc:E-NT-03\" }}`, with `low`, "
        "`high` and `help` if wanted; "
        "`like = \"nt-pair:server\"` starts from the values of another host. `[placements]` names hosts and cores for `--mode`.",
        "### Keys of a host",
        _quantities(quantities(Host)),
        "### Keys of a link",
        _quantities(quantities(Link)),
        "## A paper's folder { #paper }",
        f"`paper.toml`: {_keys(keys())}. A `[[curve]]`: {_keys(curves.KEYS)}; a `[[fit]]`: {_keys(curves.FIT_KEYS)}. "
        f"`claims.csv`: {_keys(claims.REQUIRED)}; optional {_keys(claims.OPTIONAL)}. `use`: {_keys(claims.USES)}; `kind`: "
        f"{_keys(claims.KINDS)}; `unit` of what is converted: {_keys(UNITS)}. `checks.toml`, by `kind`: {_keys(EVALUATORS)}. "
        "[Your own paper](../your-own-paper.md) goes through one.",
        "## A model's own evidence { #evidence }",
        _toml(_example(evidence)),
        "## Trace { #trace }",
        "Lines and attributes: [The trace format](../trace-format.md).",
        "## Collectives { #collectives }",
        "What `--set coll.OPERATION=ALGORITHM` takes; [what they are](../collectives.md).",
        table(["key", "algorithms"], algos),
        "## Units { #units }",
        "A number needs a unit, except plain numbers, probabilities, 0, and sizes, which are bytes without one. "
        "`KB`, `MB` and `GB` are rejected for sizes, since "
        "the papers mean sometimes 1000 and sometimes 1024 by them. Rates in bits end in `bps`, rates in bytes in `B/s`.",
        _units(),
        "A parameter of a model or a platform, and what a model's parts return, must be zero (where that makes sense) or within these "
        "values (`retrompi.base.units.WIDEST`): far beyond any machine, for what-ifs, and near enough that what is computed with them can "
        "be counted. A field may have narrower bounds of its own.",
        _widest(),
        "Sizes take lists and ranges: `0,1KiB,4KiB..4MiB:x2` (by factors), `64KiB..256KiB:+64KiB` (by steps).",
        "## Exit codes { #exit-codes }",
        _errors(),
        "Results go to stdout; errors (one line), warnings and progress go to stderr. `--json` and `--csv` "
        "print data. "
        "`NO_COLOR` disables colours.",
    ]
    return [ManualPage("reference/files.md", "Files, units, exit codes", "Files, units, exit codes", "\n\n".join(out) + "\n")]
