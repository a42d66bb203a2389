"""docs/add-a-runtime.md works: its files are written, its commands run, and they print what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOC = Path(__file__).resolve().parents[1] / "docs" / "add-a-runtime.md"
TEXT = DOC.read_text(encoding="utf-8")
BLOCKS = [(m[1], m[2], m.start()) for m in re.finditer(r"^```(\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)]


def _named_before(position: int, names: list[str]) -> str:
    """The file name that the page mentions last before a block."""
    return max(names, key=lambda n: TEXT.rfind(f"`{n}`", 0, position))


def _files() -> dict[str, str]:
    names = ["postbox/__init__.py", "exchange.txt", "postbox/evidence.toml", "test_postbox.py"]
    found = {_named_before(at, names): body for kind, body, at in BLOCKS if kind != "console"}
    assert sorted(found) == sorted(names)
    return found


def _commands() -> list[tuple[int, str, list[str]]]:
    """(place in the page, command, what it must print; a line that begins with ``!`` is an error's) for every ``$``."""
    out: list[tuple[int, str, list[str]]] = []
    for kind, body, at in BLOCKS:
        if kind == "console":
            for line in body.splitlines():
                if line.startswith("$ "):
                    out.append((at, line[2:], []))
                else:
                    out[-1][2].append(line)
    return out


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def test_the_model_fits_on_a_page() -> None:
    assert len(_files()["postbox/__init__.py"].splitlines()) < 100


def test_the_page_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETROMPI_STORE", str(tmp_path / "runs.db"))
    (tmp_path / "postbox").mkdir()
    files = _files()
    late = TEXT.index("## Calibrating it")
    # The evidence comes into being only where the page has it: everything before must work without.
    for name in ("postbox/__init__.py", "exchange.txt", "test_postbox.py"):
        (tmp_path / name).write_text(files[name], encoding="utf-8")
    commands = _commands()
    assert len(commands) >= 8
    for at, command, promised in commands:
        if at > late:
            (tmp_path / "postbox" / "evidence.toml").write_text(files["postbox/evidence.toml"], encoding="utf-8")
        program, *args = command.split()
        assert program == "retrompi"
        run = subprocess.run([sys.executable, "-m", "retrompi.cli.main", *args], cwd=tmp_path, capture_output=True, text=True, timeout=300)
        wrong = any(p.startswith("!") for p in promised)
        assert run.returncode == (2 if wrong else 0), f"{command}\n{run.stdout}{run.stderr}"
        said = _squeezed(run.stdout + run.stderr)
        for text in promised:
            assert _squeezed(text.lstrip("! ")) in said, f"{command} does not print '{text}':\n{run.stdout}{run.stderr}"
    pytest_ = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_postbox.py"]
    done = subprocess.run(pytest_, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout
    assert {p.name for p in (tmp_path / "postbox").iterdir()} - {"__pycache__"} == {"__init__.py", "evidence.toml", "fit.toml"}


def test_a_folder_among_the_models_is_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the page says about models/: a folder there needs no path and no registration."""
    from retrompi import paths, registry

    (tmp_path / "postbox").mkdir()
    (tmp_path / "postbox" / "__init__.py").write_text(_files()["postbox/__init__.py"], encoding="utf-8")
    import retrompi.models

    monkeypatch.setattr(retrompi.models, "__path__", [*retrompi.models.__path__, str(tmp_path)])
    monkeypatch.setattr(paths, "models_dir", lambda: tmp_path)
    assert registry.model_names() == ["postbox"]
    assert registry.model("postbox").title == "Postbox"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('id = "POST-02"', 'id = "POST-01"'), "appears twice"),
        (('use = "validate"', 'use = "guess"'), "use 'guess'"),
        (('kind = "range", mode = "shared", metric = "peak"', 'kind = "rnge"'), "no kind of check 'rnge'"),
        (("low = 63\n", ""), "missing key 'low'"),
    ],
)
def test_wrong_evidence_is_told_in_one_line(change: tuple[str, str], message: str, tmp_path: Path) -> None:
    from retrompi import registry
    from retrompi.errors import InputError
    from retrompi.validate.evidence import evidence

    files = _files()
    (tmp_path / "postbox").mkdir()
    (tmp_path / "postbox" / "__init__.py").write_text(files["postbox/__init__.py"], encoding="utf-8")
    text = files["postbox/evidence.toml"]
    assert change[0] in text
    (tmp_path / "postbox" / "evidence.toml").write_text(text.replace(*change), encoding="utf-8")
    with pytest.raises(InputError, match=re.escape(message)):
        evidence(registry.model(str(tmp_path / "postbox")))
