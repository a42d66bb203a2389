"""The engine with its assertions, which a release leaves out, in runs of all kinds: what is recorded, drawn and repeated."""

from __future__ import annotations

import subprocess
import sys

from scripts import ROOT, script

other_engine = script("packaging/other_engine.py")
FILES = ("test_records.py", "test_critical_path.py", "test_timeline.py", "test_reference.py", "test_recurrence.py",
         "test_engine_anatomy.py")


def test_no_assertion_of_the_engine_fails() -> None:
    module = other_engine.compile_engine(ROOT / "build" / "assertions")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", *(ROOT / "tests" / file for file in FILES)]
    done = subprocess.run(
        [str(part) for part in command], env=other_engine.environment(module, ROOT / "build" / "assertions" / "startup"), cwd=ROOT,
        capture_output=True, text=True, check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
