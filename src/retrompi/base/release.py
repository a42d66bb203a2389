"""The installed version, for those inside: the package itself is above all layers."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, metadata
from importlib.metadata import version as _version
from typing import Any

__all__ = ["codemeta", "version"]


def version() -> str:
    """The version of the installed package; ``0+source`` for a source tree on PYTHONPATH that was never installed."""
    try:
        return _version("retrompi")
    except PackageNotFoundError:
        return "0+source"


def codemeta() -> dict[str, Any]:
    """The installed package as CodeMeta 3.0 describes software, from the metadata of pyproject.toml; what that does not say is left out."""
    out: dict[str, Any] = {"@context": "https://w3id.org/codemeta/3.0", "@type": "SoftwareSourceCode", "name": "retrompi"}
    out["version"] = version()
    try:
        about = metadata("retrompi")
    except PackageNotFoundError:
        return out
    said = {key: about[key] for key in ("Summary", "Keywords", "Requires-Python") if key in about}
    pages = dict(text.split(", ", 1) for text in about.get_all("Project-URL") or ())
    needed = [re.split(r"[ ;]", text)[0] for text in about.get_all("Requires-Dist") or () if "extra ==" not in text]
    languages = [c.split(" :: ")[1] for c in about.get_all("Classifier") or () if c in ("Programming Language :: C++",)]
    given = {
        "description": said.get("Summary"),
        "license": "https://spdx.org/licenses/LGPL-2.1-or-later",
        "author": {"@type": "Organization", "name": "The retrompi authors"},
        "keywords": [word.strip() for word in said.get("Keywords", "").split(",") if word.strip()],
        "programmingLanguage": ["Python", *languages],
        "runtimePlatform": f"Python {said['Requires-Python']}" if "Requires-Python" in said else None,
        "softwareRequirements": needed,
        "codeRepository": pages.get("Repository") or pages.get("Source"),
        "url": pages.get("Homepage") or pages.get("Documentation"),
    }
    return out | {key: value for key, value in given.items() if value}
