"""The table of transfer: every model on every machine that its library is known to have run on, simulated and published.

``validate/transfer.toml`` lists the pairs; `rows` simulates their numbers and counts the verdicts of the papers' statements.
``transfer.csv`` keeps the outcome (`shipped_rows`), so that cards show it without a simulation.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrompi.base import paths, units
from retrompi.base import toml as toml_text
from retrompi.base.csv_safe import write_rows
from retrompi.base.errors import InputError, UsageError, nearest
from retrompi.papers.predict import predictions
from retrompi.papers.statements.claims import Claim, judging
from retrompi.spec.question import Question, pingpong
from retrompi.store.lookup import answer

if TYPE_CHECKING:
    from retrompi.store.database import Store

__all__ = ["KEYS", "USES", "PublishedNumber", "TransferPair", "pairs", "rows", "shipped_rows", "with_verdicts", "write"]

USES = ("fitted", "input", "held out", "blind")
KEYS = ("model", "machine", "platform", "what", "size_B", "published", "low", "high", "simulated", "ratio", "unit", "use", "ref", "note")
"""The columns of the table. Numbers are in base units (s, B/s, B); counts of statements are in ``statements``."""
_PAIR = ("models", "machine", "platform", "placement", "claims", "note", "numbers")
_NUMBER = ("what", "size", "published", "low", "high", "ref", "use", "sets")
WHAT: Mapping[str, tuple[str, str]] = {"time": ("time", "s"), "rate": ("bandwidth", "B/s"), "half": ("half bandwidth", "B")}
"""What is compared: its name and unit. Times are one way, the bandwidth of a PingPong is size / time, and half bandwidth is the size at
which half of that of ``size`` is reached."""
STATEMENTS = "statements"
PREDICTION = "predictions/"
"""The beginning of a source that is a prediction of the project."""
_SHORT = {"calibrate": "fitted", "validate": "held out"}
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class PublishedNumber:
    """A published number, in base units; ``low``..``high`` its reading tolerance, ``sets`` overrides that its measurement needs."""

    what: str
    size: int
    published: float
    low: float
    high: float
    ref: str
    use: str
    sets: tuple[str, ...] = ()


@dataclass(frozen=True)
class TransferPair:
    """A model on a machine. ``platform`` is empty if none describes it; ``claims`` is the pattern of the statements judged there."""

    model: str
    machine: str
    platform: str = ""
    placement: str = "distributed"
    claims: str = ""
    note: str = ""
    numbers: tuple[PublishedNumber, ...] = ()


def _file() -> Path:
    return paths.validate_dir() / "transfer.toml"


@cache
def pairs() -> tuple[TransferPair, ...]:
    """Every pair, in the file's order, models first; InputError for a wrong file."""
    file = _file()
    out = []
    with toml_text.taken_apart("table of transfer", file):
        for given in toml_text.read(file, "table of transfer")[1]["pair"]:
            _check_keys(given, _PAIR, file)
            numbers = tuple(_number(n, file) for n in given.get("numbers", ()))
            more = {k: given[k] for k in ("machine", "platform", "placement", "claims", "note") if k in given}
            out += [TransferPair(model=m, numbers=numbers, **more) for m in given["models"]]
    return tuple(out)


def _check_keys(given: Mapping[str, Any], keys: Sequence[str], file: Path) -> None:
    for key in given:
        if key not in keys:
            raise InputError(f"unknown key '{key}'{nearest(key, keys)}", file, code="unknown-key")


def _number(given: Mapping[str, Any], file: Path) -> PublishedNumber:
    _check_keys(given, _NUMBER, file)
    for key, valid in (("what", tuple(WHAT)), ("use", USES)):
        if given[key] not in valid:
            raise InputError(f"{key} '{given[key]}'{nearest(given[key], valid)}", file, code="unknown-name")
    unit = WHAT[given["what"]][1]
    try:
        published, low, high = (units.parse(given.get(k, given["published"]), unit) for k in ("published", "low", "high"))
        size = int(units.parse(given["size"], "B"))
    except UsageError as error:
        raise InputError(str(error), file, code=error.code) from None
    return PublishedNumber(given["what"], size, published, low, high, given["ref"], given["use"], tuple(given.get("sets", ())))


# --- the simulated side ----------------------------------------------------------------------------------------------------------


def _simulate_number(store: Store, pair: TransferPair, number: PublishedNumber, fresh: bool) -> float:
    sizes = [number.size] if number.what != "half" else [s for s in (1 << k for k in range(4, 31)) if s <= number.size]
    question = Question(pair.model, pair.platform, pingpong(sizes, warm_up=2), pair.placement, list(number.sets))
    times = {int(r["size_B"]): float(r["time_us"]) * 1e-6 for r in answer(store, question, fresh=fresh).rows}
    if number.what == "time":
        return times[number.size]
    rates = {size: size / t for size, t in times.items()}
    return rates[number.size] if number.what == "rate" else _half(rates)


def _half(rates: Mapping[int, float]) -> float:
    """The size at which half of the rate of the largest one is reached, interpolated between sizes on logarithmic scales."""
    sizes = sorted(rates)
    wanted = rates[sizes[-1]] / 2
    above = next(i for i, s in enumerate(sizes) if rates[s] >= wanted)
    if above == 0:
        return float(sizes[0])
    (a, ra), (b, rb) = ((s, rates[s]) for s in sizes[above - 1 : above + 1])
    return float(a * (b / a) ** (math.log(wanted / ra) / math.log(rb / ra)))


def rows(store: Store, model: str = "", *, fresh: bool = False, progress: Progress | None = None) -> list[dict[str, Any]]:
    """The table, with `KEYS`, of all models or one (and its variants): numbers simulated or found in the store, statements by the newest
    verdicts of the store, or else as shipped (``simulated`` is how many hold), and the shipped predictions."""
    wanted = [p for p in pairs() if not model or model in (p.model, p.model.partition(":")[0])]
    out = []
    for done, pair in enumerate(wanted):
        if progress is not None:
            progress(done, len(wanted), f"{pair.model} on {pair.platform or pair.machine}")
        out += _statements(pair)
        for n in pair.numbers:
            value = _simulate_number(store, pair, n, fresh) if pair.platform else None
            out.append(_row(pair, WHAT[n.what][0], size_B=n.size, published=n.published, low=n.low, high=n.high, simulated=value,
                            unit=WHAT[n.what][1], use=n.use, ref=n.ref))
        if not pair.claims and not pair.numbers:
            out.append(_row(pair, "no number"))
    return with_verdicts(out, {str(v["id"]): str(v["verdict"]) for v in store.verdicts()}) + _blind(model)


def with_verdicts(found: Sequence[Mapping[str, Any]], verdicts: Mapping[str, str]) -> list[dict[str, Any]]:
    """``found`` with the statements counted by these ``verdicts`` (id -> pass or fail); a row stays as it is where one is missing."""
    out = []
    for row in map(dict, found):
        if row["unit"] == STATEMENTS:
            mine = [c.id for c in _judging(row["model"], row["ref"], row["use"])]
            if mine and all(i in verdicts for i in mine):
                row["published"], row["simulated"] = len(mine), sum(verdicts[i] == "pass" for i in mine)
                row["ratio"] = row["simulated"] / len(mine)
        out.append(row)
    return out


def _judging(model: str, pattern: str, use: str) -> list[Claim]:
    return [c for c in judging(model) if _SHORT.get(c.use) == use and re.match(pattern, c.id)]


def _row(pair: TransferPair, what: str, **values: Any) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(KEYS, None)
    row |= {"model": pair.model, "machine": pair.machine, "platform": pair.platform, "what": what, "note": pair.note, **values}
    if row["published"] and row["simulated"] is not None:
        row["ratio"] = row["simulated"] / row["published"]
    return row


def _statements(pair: TransferPair) -> list[dict[str, Any]]:
    """A row for the fitted and one for the held-out statements that a check judges."""
    if not pair.claims:
        return []
    counts = {use: len(_judging(pair.model, pair.claims, use)) for use in _SHORT.values()}
    known = {
        (r["machine"], r["use"], r["published"]): int(r["simulated"])
        for r in shipped_rows(pair.model) if r["unit"] == STATEMENTS and r["simulated"] is not None
    }
    return [_row(pair, STATEMENTS, published=n, simulated=known.get((pair.machine, use, n)), unit=STATEMENTS, use=use, ref=pair.claims)
            for use, n in counts.items() if n]


def _blind(model: str) -> list[dict[str, Any]]:
    """The shipped predictions, without whole curves; ``low``..``high`` is their interval."""
    out = []
    for name, told in predictions.shipped_predictions().items():
        if told["paper"] or (model and model not in (told["model"], str(told["model"]).partition(":")[0])):
            continue
        pair = TransferPair(told["model"], told["machine"], told["platform"], note=f"predicted {told['date']}, interval of 5 to 95 %")
        out += [_row(pair, WHAT["time"][0], size_B=v["size_B"], simulated=v["nominal_s"], low=v["low_s"], high=v["high_s"], unit="s",
                     use=told["use"], ref=f"{PREDICTION}{name}.toml") for v in told["value"]]
    return out


# --- the file of outcomes ----------------------------------------------------------------------------------------------------------


def _outcome() -> Path:
    return _file().with_suffix(".csv")


def _digits(value: Any) -> Any:
    return float(f"{value:.5g}") if isinstance(value, float) else value


def write(found: Sequence[Mapping[str, Any]]) -> Path:
    """Writes ``validate/transfer.csv`` and returns its path; InputError if it cannot be written."""
    text = io.StringIO()
    write_rows(text, KEYS, [{k: _digits(r[k]) for k in KEYS} for r in found])
    try:
        _outcome().write_text(text.getvalue(), encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write the table: {error.strerror}", _outcome(), code="unwritable-file") from None
    return _outcome()


@cache
def _read_shipped() -> tuple[dict[str, Any], ...]:
    if not _outcome().is_file():
        return ()
    whole, numbers = ("size_B",), ("published", "low", "high", "simulated", "ratio")
    with _outcome().open(newline="", encoding="utf-8") as handle:
        found = list(csv.DictReader(handle))
    return tuple({k: None if v == "" else int(v) if k in whole else float(v) if k in numbers else v for k, v in r.items()} for r in found)


def shipped_rows(model: str = "") -> list[dict[str, Any]]:
    """The rows of ``transfer.csv`` of all models or of exactly one."""
    return [dict(r) for r in _read_shipped() if not model or r["model"] == model]
