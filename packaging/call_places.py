"""How many files name a call: the measure of how far a call is declared once. ``python packaging/call_places.py`` prints a line each."""

from __future__ import annotations

from pathlib import Path

CALLS = ("reducescatterblock", "alltoallw", "exscan", "iprobe")
ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("src", "cli", "models")
KINDS = {".py", ".cpp", ".hpp", ".c", ".h"}


def places(call: str) -> list[str]:
    """The files of the package, its commands and its models that name a call, in any spelling of the case."""
    files = (f for folder in FOLDERS for f in (ROOT / folder).rglob("*") if f.suffix in KINDS)
    return sorted(f.relative_to(ROOT).as_posix() for f in files if call in f.read_text(encoding="utf-8").lower())


if __name__ == "__main__":
    for call in CALLS:
        print(call, len(places(call)), *places(call))
