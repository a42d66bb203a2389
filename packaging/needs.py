"""What pyproject.toml says that retrompi needs, as a requirements file: ``needs.py [EXTRA ...]``.

Without an extra: what it runs with. ``build``: what it is built with; any other extra: what that adds.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path


def main() -> None:
    """Print one requirement a line."""
    declared = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))
    known = {**declared["project"]["optional-dependencies"], "build": declared["build-system"]["requires"]}
    for needed in [known[extra] for extra in sys.argv[1:]] or [declared["project"]["dependencies"]]:
        print(*needed, sep="\n")


if __name__ == "__main__":
    main()
