"""A share of what fuzz_readers.py tries: whatever a file holds, a reader ends with a value or one line."""

from __future__ import annotations

import os

import pytest
from cases import for_each
from fuzz_readers import READERS, fuzz

NEEDS = {"otf2": "otf2", "link": "dash"}
INPUTS = int(os.environ.get("RETROMPI_FUZZ_INPUTS", "9"))


@for_each("name", READERS)
@for_each("seed", range(1, 4), few=1)
def test_mutated_files(name: str, seed: int) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    out = fuzz(name, INPUTS if name not in ("otf2", "store", "link") else INPUTS // 3, seed=seed)
    assert not out.findings, [str(f) for f in out.findings]

