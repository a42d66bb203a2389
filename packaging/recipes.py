"""Recipes for conda-forge, Spack and Guix, for one source distribution and the address it is published at.

``python packaging/recipes.py dist/retrompi-0.7.0.tar.gz --url https://... -o build/recipes`` fills packaging/recipes/*.in: version,
requirements and summary come from the pyproject.toml inside of the distribution, the SHA-256 from the file itself. There is no recipe
without the file, so that none has a hash of something else.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
import tarfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TEMPLATES = HERE / "recipes"
MADE = {"recipe.yaml": "conda/recipe.yaml", "package.py": "spack/packages/py_retrompi/package.py", "retrompi.scm": "guix/retrompi.scm"}
_REQUIREMENT = re.compile(r"([A-Za-z0-9_.-]+)(?:\[[^\]]*\])?\s*(?:>=\s*([0-9.]+))?$")


def requirements(project: dict[str, Any]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """(to build, to run): name and lower bound of each."""
    both = project["build-system"]["requires"], project["project"]["dependencies"]
    told = []
    for lines in both:
        found = [_REQUIREMENT.fullmatch(line) for line in lines]
        if None in found:
            raise ValueError(f"a requirement that no recipe can say: {lines[found.index(None)]}")
        told.append([(m[1], m[2] or "") for m in found if m is not None])
    return told[0], told[1]


def _conda(wanted: Sequence[tuple[str, str]]) -> str:
    return "\n".join(f"    - {name} >={low}" if low else f"    - {name}" for name, low in wanted)


def _spack(wanted: Sequence[tuple[str, str]], when: str) -> str:
    names = [(f"py-{name.lower().replace('_', '-')}", f"@{low}:" if low else "") for name, low in wanted]
    return "\n".join(f'    depends_on("{name}{at}", type={when})' for name, at in names)


def _guix(wanted: Sequence[tuple[str, str]]) -> str:
    return " ".join(f'"python-{name.lower().replace("_", "-")}"' for name, _ in wanted)


def recipes(sdist: Path, url: str) -> dict[str, str]:
    """Path below the output folder -> text. Raises ValueError for a file that is no source distribution of retrompi."""
    with tarfile.open(sdist) as archive:
        inside = next((n for n in archive.getnames() if re.fullmatch(r"retrompi-[^/]+/pyproject\.toml", n)), None)
        if inside is None:
            raise ValueError(f"{sdist} is no source distribution of retrompi: no pyproject.toml in it")
        member = archive.extractfile(inside)
        assert member is not None
        project = tomllib.loads(member.read().decode())
    build, run = requirements(project)
    simgrid = (HERE / "simgrid.txt").read_text(encoding="utf-8")
    carried, its_hash = re.search(r"simgrid==(\S+)", simgrid), re.search(r"sha256:([0-9a-f]{64})", simgrid)
    assert carried is not None
    assert its_hash is not None
    about = project["project"]
    content = hashlib.sha256(sdist.read_bytes()).hexdigest()
    given = {"VERSION": about["version"], "URL": url, "SHA256": content, "SUMMARY": about["description"],
             "HOME": url.rpartition("/")[0], "SIMGRID": carried[1], "SIMGRID_SHA256": its_hash[1]}
    lists = {"recipe.yaml": (_conda(build), _conda(run)), "retrompi.scm": (_guix(build), _guix(run)),
             "package.py": (_spack(build, '"build"'), _spack(run, '("build", "run")'))}
    out = {}
    for name, place in MADE.items():
        values = {**given, "HOST": lists[name][0], "RUN": lists[name][1]}
        text = (TEMPLATES / f"{name}.in").read_text(encoding="utf-8")
        out[place] = re.sub(r"@([A-Z0-9_]+)@", lambda m, values=values: values[m[1]], text)
    return out


def main() -> int:
    """Write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sdist", type=Path)
    parser.add_argument("--url", required=True, help="the address that the source distribution is published at")
    parser.add_argument("-o", "--output", type=Path, default=Path("build/recipes"))
    given = parser.parse_args()
    try:
        told = recipes(given.sdist, given.url)
    except (OSError, ValueError, tarfile.TarError) as error:
        print(f"no recipes written: {error}", file=sys.stderr)
        return 2
    for place, text in told.items():
        path = given.output / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
