"""A share of what fuzz_readers.py tries: whatever a file holds, a reader ends with a value or one line."""

from __future__ import annotations

import os

import pytest
from fuzz_readers import READERS, fuzz

NEEDS = {"otf2": "otf2", "link": "dash"}
INPUTS = int(os.environ.get("RETROMPI_FUZZ_INPUTS", "25"))


@pytest.mark.parametrize("name", READERS)
def test_mutated_files(name: str) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    out = fuzz(name, INPUTS if name not in ("otf2", "store", "link") else INPUTS // 3, seed=1)
    assert not out.findings, [str(f) for f in out.findings]

