"""A model that a user wrote: whatever it raises or returns is one line with its file, exit code 2; listing runs nothing it need not."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cases import for_each
from refusals import agrees
from test_study_files import MODEL

PLAIN = re.sub(r"^\(__import__.*\n", "", MODEL, flags=re.MULTILINE)
RAISES = [
    "raise SystemExit", "raise SystemExit(0)", "raise SystemExit('bye')", "raise KeyError('x')", "raise ValueError", "[][1]", "exit()",
    "import sys; sys.exit(3)", "raise GeneratorExit", "raise StopIteration", "assert False", "raise OSError('no')", "import no_such_module",
    "(lambda f: f(f))(lambda f: f(f))", "raise MemoryError", "raise UnicodeDecodeError('utf-8', b'x', 0, 1, 'bad')", "p.no_such_parameter",
    "from retrompi.base.errors import EngineError; raise EngineError('mine')",
    "raise type('Odd', (Exception,), {'__str__': lambda s: 1 / 0})",
    "raise RuntimeError('two\\nlines \\x1b[31m')",
]
PARTS = {
    "calls": "        return Library(p.library, p.library, BLOCK, BLOCK)\n",
    "within_host": "        return Path([Ring((\"rank\", \"rank\"), packet=8192, header=32, slots=4)])\n",
    "between_hosts": "        return Path([Stream((\"rank\", \"rank\"), packet=8192, header=32, call=1e-4)])\n",
}
RING = "Path([Ring((%s), packet=%s, header=32, slots=%s)])"
NAMES = '"rank", "rank"'
RETURNS = [
    "None", "3", "'x'", "[]", "{}", "object()", "lambda: 0", "(1, 2)", "Library('a', 'b', BLOCK, BLOCK)", "Library(None, 1, BLOCK, BLOCK)",
    "Library(1, 1, 'x', None)", "Path(None)", "Path([3])", RING % (NAMES, "'x'", "4"), RING % ("1, 2", "8192", "4"),
    RING % (NAMES, "1 << 80", "4"), RING % (NAMES, "8192", "object()"),
]


def _model(tmp_path: Path, source: str) -> str:
    (tmp_path / "mine").mkdir(exist_ok=True)
    (tmp_path / "mine" / "__init__.py").write_text(source, encoding="utf-8")
    for kept in (tmp_path / "mine").glob("__pycache__/*"):
        kept.unlink()
    from retrompi.spec import registry

    registry.forget(tmp_path / "mine")
    return str(tmp_path / "mine")


def _told(done: Any, place: str) -> None:
    assert done.code == 2, done.err
    assert done.err.count("\n") == 1
    agrees(done, f"broken-model | {place}")


@for_each("statement", RAISES)
def test_what_a_model_raises_names_its_file_and_line(statement: str, retrompi: Callable[..., Any], tmp_path: Path) -> None:
    _told(retrompi("pingpong", "-m", _model(tmp_path, f"{PLAIN}\n\np = None\n{statement}\n"), "--sizes", "0B"), "mine/__init__.py:")
    for part, mode in (("calls", "shared"), ("within_host", "shared"), ("between_hosts", "distributed")):
        source = PLAIN.replace(PARTS[part], f"        {statement}\n{PARTS[part]}")
        line = 1 + source[: source.index(f"        {statement}\n")].count("\n")
        done = retrompi("pingpong", "-m", _model(tmp_path, source), "--sizes", "0B", "--reps", "1", "--mode", mode)
        _told(done, f"mine/__init__.py:{line}:")
    if "p.no" not in statement:
        for method in ("joins(self, platform, placement)", "cautions(self, p, platform, placement)"):
            source = f"{PLAIN}\n    def {method}:\n        {statement}\n"
            _told(retrompi("pingpong", "-m", _model(tmp_path, source), "--sizes", "0B", "--reps", "1"), "mine/__init__.py:")
        source = f"{PLAIN}\n    def startup(self, p, platform, placement, draw):\n        {statement}\n"
        _told(retrompi("startup", "-m", _model(tmp_path, source)), "mine/__init__.py:")


@for_each("value", RETURNS)
def test_what_a_model_returns_of_a_wrong_type_is_one_line(value: str, retrompi: Callable[..., Any], tmp_path: Path) -> None:
    for part, mode in (("calls", "shared"), ("within_host", "shared"), ("between_hosts", "distributed")):
        if (value.startswith("Path(") and part == "calls") or (value.startswith("Library(") and part != "calls"):
            continue
        source = PLAIN.replace(PARTS[part], f"        return {value}\n")
        done = retrompi("pingpong", "-m", _model(tmp_path, source), "--sizes", "0B", "--reps", "1", "--mode", mode)
        assert done.code == 2, (part, done.err)
        assert done.err.count("\n") == 1


@for_each("declared", [
    "calibrated = 3", "collectives = 3", "collectives = ('x',)", "communicators = None", "measured_by = 3", "fits_platform = 'nic_rate'",
    "variant_of = 3", "title = 3", "library = Param('40 us', 's', 'library work', source='paper:X-01')", "puts_in_collectives = 'yes'",
    "library = Param('40 us', 's', 'x', source='paper:BF-SM-99')", f"name = {'x' * 81!r}",
])
def test_a_declaration_of_a_wrong_type_or_source_is_one_line(declared: str, retrompi: Callable[..., Any], tmp_path: Path) -> None:
    last = '    summary = "one ring"\n'
    done = retrompi("pingpong", "-m", _model(tmp_path, PLAIN.replace(last, f"{last}    {declared}\n")))
    _told(done, "mine/__init__.py:")


def test_a_platform_s_source_of_no_row_is_refused(retrompi: Callable[..., Any], tmp_path: Path) -> None:
    text = (Path(__file__).parents[1] / "platforms" / "nt-pair.toml").read_text(encoding="utf-8")
    (tmp_path / "room.toml").write_text(re.sub(r'source = "[^"]*"', 'source = "paper:X-01"', text, count=1), encoding="utf-8")
    agrees(retrompi("platforms", "show", str(tmp_path / "room.toml")), "bad-source | 'X-01'")


def test_listing_survives_any_model_and_runs_those_of_the_user_s_own_folder_alone(retrompi: Callable[..., Any], tmp_path: Path) -> None:
    """`models list` imports what the user has put into the folder for models: nobody else does. Other lists need none of it."""
    own = tmp_path / "data" / "retrompi" / "models"
    ran = tmp_path / "ran"
    for name, statement in (("ends", "raise SystemExit"), ("fails", "1 / 0")):
        (own / name).mkdir(parents=True)
        (own / name / "__init__.py").write_text(f"open({str(ran)!r}, 'a').write('{name} ')\n{statement}\n")
    (tmp_path / "x.ti").write_text("0 init\n0 send 1 0 8 6\n0 finalize\n1 init\n1 recv 0 0 8 6\n1 finalize\n")
    for words in (("platforms", "list"), ("platforms", "show", "nt-pair"), ("trace", "info", str(tmp_path / "x.ti")), ("scenarios", "list"),
                  ("claims", "list"), ("models", "show", "wmpi")):
        done = retrompi(*words)
        assert done.code == 0, done.err
        assert not ran.exists() or words[0] == "models", words
    done = retrompi("models", "list")
    assert done.code == 0
    assert "wmpi" in done.out
    assert all(f"'{name}'" in done.err for name in ("ends", "fails"))
