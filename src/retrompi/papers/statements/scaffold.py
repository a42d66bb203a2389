"""A new paper's folder: a small complete one, whose numbers are examples to be replaced (``retrompi paper new``)."""

from __future__ import annotations

import re
from pathlib import Path

from retrompi.base.errors import UsageError
from retrompi.papers.statements.claims import folders

__all__ = ["FILES", "create"]

_PAPER = """\
# How this paper is replayed. Everything below is an example, made up: replace it.
# 'retrompi paper check .' lists what is wrong; validate/papers/README.md of retrompi explains every key.

title = "Title of the paper"
authors = "A. Author, B. Author"
year = 1996
address = "where it is printed, or can be read"

# Shown as cards on the page. 'retrompi models list' and 'retrompi platforms list' have the names; a folder models/NAME, a file
# platforms/NAME.toml, platforms/hosts/NAME.toml or platforms/networks/NAME.toml here is found by its name too.
models = ["sockets"]
platforms = ["linux-p6-200*2@switch-100"]

# Every model is simulated in every mode on the first platform: a rank on each host (distributed), or both on one (shared).
experiments = ["pingpong"]

[pingpong]
modes = ["distributed"]
sizes = "0,1B..1MiB:x2"

# A measured curve: points at sizes. use = "calibrate" (a fit may see it), "validate" (held out) or "context" (shown).
[[curve]]
name = "example"
title = "One-way time, an example"
file = "curves/example.csv"
model = "sockets"
platform = "linux-p6-200*2@switch-100"
use = "validate"

# The contents of the page, in this order.
[[figure]]
name = "bandwidth"
title = "Bandwidth"
what = "bandwidth"
curves = [["sockets", "distributed"]]

[[figure]]
name = "measured"
title = "Measured (points) and simulated (line)"
what = "bandwidth"
measured = ["example"]
"""

_CLAIMS = """\
id,system,platform,configuration,observable,value,unit,low,high,kind,use,section,note
EX-1,sockets,two Pentium Pro,PingPong,start-up latency,230,microseconds,210,250,quant,validate,Table 1,"an example, made up"
EX-2,sockets,two Pentium Pro,PingPong,peak bandwidth,8.5,MB/s,8,9,quant,validate,Table 1,"an example, made up"
"""

_CHECKS = """\
# Which check decides which claim. The numbers are in claims.csv alone.

[[EX-1]]
kind = "range"
metric = "startup"
models = ["sockets"]
mode = "distributed"

[[EX-2]]
kind = "range"
metric = "peak"
models = ["sockets"]
mode = "distributed"
"""

_CURVE = """\
bytes,time_us,plus_minus
8,230,10
64,240,10
1024,400,10
16384,2200,50
65536,8000,100
"""

_README = """\
# NAME

A paper for retrompi. Its numbers are examples, made up: replace them by those of your paper.

    paper.toml     title, authors, models, platforms, experiments, curves, the contents of the page
    claims.csv     what the paper states, one statement a row
    checks.toml    which check decides which claim
    curves/        measured points

    retrompi paper check .        # everything that is wrong, with file and line
    retrompi reproduce . -o report
    retrompi validate --paper .   # exit code 1 if a claim fails
    retrompi calibrate .          # fits what [[fit]] names to claims and curves marked calibrate
"""

FILES = {"paper.toml": _PAPER, "claims.csv": _CLAIMS, "checks.toml": _CHECKS, "curves/example.csv": _CURVE, "README.md": _README}
"""The files of a new paper."""


def create(folder: Path) -> list[Path]:
    """Writes a new paper into ``folder``, which does not exist or is empty; returns the files.

    Raises UsageError for a folder with files, a name that cannot be a key, or the key of a paper of the package.
    """
    name = folder.resolve().name
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}", name):
        raise UsageError(f"'{name[:80]}' cannot be a paper's key: letters, digits, '.', '_' and '-', at most 60", code="bad-name")
    if name in {f.name for f in folders()}:
        raise UsageError(f"retrompi has a paper '{name}', and verdicts are stored by this key; choose another name", code="duplicate-name")
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"{folder} exists and is not an empty folder", code="exists-already")
        for path, text in FILES.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text.replace("# NAME", f"# {name}"), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {folder}: {error.strerror}", code="unwritable-file") from None
    return [folder / path for path in FILES]
