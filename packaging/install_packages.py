"""Installs packages into the environment of the Python that runs this: ``install_packages.py [uv or pip install ARGUMENT ...]``.

uv resolves, downloads and unpacks in a tenth of pip's time. pip installs it, and takes over where uv cannot be had or cannot reach the
index. An index that pip is told to use, by its environment or file, is used by uv too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
UV = Path(sys.executable).with_name("uv")


def index_of_pip() -> str:
    """The index that pip was told to use; "" where it was not."""
    told = subprocess.run([*PIP, "config", "get", "global.index-url"], capture_output=True, text=True, check=False)
    return os.environ.get("PIP_INDEX_URL") or (told.stdout.strip() if told.returncode == 0 else "")


def main() -> int:
    """Install; the exit code of who did."""
    arguments = sys.argv[1:]
    if not UV.exists():
        at = arguments.index("-c") if "-c" in arguments else len(arguments)
        subprocess.run([*PIP, "install", "--progress-bar", "off", *arguments[at : at + 2], "uv>=0.5"], check=False)
    if UV.exists() or shutil.which("uv"):
        index = index_of_pip()
        environment = os.environ | ({"UV_DEFAULT_INDEX": index} if index else {})
        command = [str(UV) if UV.exists() else "uv", "pip", "install", "--python", sys.executable, *arguments]
        if subprocess.run(command, env=environment, check=False).returncode == 0:
            return 0
        print("uv could not: pip tries", flush=True)
    return subprocess.run([*PIP, "install", "--progress-bar", "off", *arguments], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
