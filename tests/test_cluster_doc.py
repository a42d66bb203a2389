"""docs/cluster.md works: its commands run as they stand there, but for the names of machines."""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from postgres import Server
from study_runs import descendants, lives, until

DOC = Path(__file__).parent.parent / "docs" / "cluster.md"


def test_its_commands_run(postgres: Server, tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="distributed not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = postgres.database()
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "TMPDIR": str(tmp_path)}
    lines = [line.strip() for line in DOC.read_text(encoding="utf-8").splitlines() if line.startswith("    ")]
    assert [line.split()[0] for line in lines] == ["pip", "dask", "dask", "retrompi", "retrompi", "retrompi"]
    running, told = [], []

    def answers() -> bool:
        with socket.socket() as line:
            return line.connect_ex(("127.0.0.1", port)) == 0

    try:
        for line in lines[1:]:
            command = shlex.split(
                line.replace("postgresql+psycopg://me@node1/retrompi", url).replace("node1", "127.0.0.1").replace("8786", str(port))
            )
            if command[0] == "dask":
                with (tmp_path / "log").open("ab") as log:
                    running.append(subprocess.Popen(command, stdout=log, stderr=log, cwd=tmp_path, env=environment, process_group=0))
                until(answers)
                continue
            ran = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=60, check=False)
            assert (ran.returncode, ran.stderr) == (0, "")
            told.append(ran.stdout)
    finally:
        for process in running:
            for pid in [*descendants(process.pid), process.pid]:
                if lives(pid):
                    os.kill(pid, 9)
            process.wait()
    assert [("6 simulated, 0 found" in out, "0 simulated, 6 found" in out) for out in told] == [(True, False), (False, True), (False, True)]
