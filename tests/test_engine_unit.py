"""The engine's C++ unit tests (tests/cpp, GoogleTest): linked with the objects of the module and run by ``make unit``."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


READY = Path("/usr/include/gtest/gtest.h").exists() and shutil.which("cmake") is not None


@pytest.mark.skipif(not READY, reason="GoogleTest or CMake is missing: make unit")
def test_the_cpp_unit_tests_pass() -> None:
    got = subprocess.run(["make", "-s", "unit"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert got.returncode == 0, got.stdout + got.stderr
    assert "[  PASSED  ]" in got.stdout
