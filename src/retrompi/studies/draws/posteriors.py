"""The files of posteriors that ship with models and papers (``posterior*.npz``), and which of them a run draws from.

A file has three arrays: ``names`` [columns], ``draws`` [columns, draws] (float32) and ``about``, a JSON text. The column ``discrepancy`` is
a standard deviation of the logarithm, ``rough`` that of its part without correlation between sizes (of posteriors of whole curves), and
there is one for each parameter by its canonical path, in base units. Files with the same
``group`` are one joint posterior: their draws belong together by number.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrompi.base import paths
from retrompi.base.errors import InputError, UsageError
from retrompi.base.paths import stamp
from retrompi.spec import registry
from retrompi.spec.declare.number import Number
from retrompi.spec.model import RuntimeModel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["DISCREPANCY", "ROUGH", "Applied", "PosteriorFile", "at_hand", "files", "posteriors_for", "read", "word", "write"]

DISCREPANCY, ROUGH = "discrepancy", "rough"
_NO_POSTERIOR = (OSError, KeyError, TypeError, ValueError, EOFError, zipfile.BadZipFile, zlib.error)
_CLOSE = 1e-6
DETERMINED, NOT_DETERMINED = 0.3, 0.8
"""Shares of the prior's variance that is left: at most the first is determined, at least the second is not."""


@dataclass(frozen=True, eq=False)
class PosteriorFile:
    """One file: ``of`` whose it is, the joint posterior ``group`` that it belongs to, and its metadata ``about``.

    ``priors``: path -> (low, high, log, unit); ``seen``: path -> the share of the prior's variance that is left; ``fitted``: the paths
    that the fit was for; ``models``: whose discrepancy it has.
    """

    file: Path
    of: str
    group: str
    about: Mapping[str, Any]

    @property
    def priors(self) -> Mapping[str, Sequence[Any]]:
        """Path -> (low, high, whether log-uniform, unit)."""
        found: Mapping[str, Sequence[Any]] = self.about["priors"]
        return found

    @property
    def seen(self) -> Mapping[str, float]:
        """Path -> the share of the prior's variance that is left."""
        found: Mapping[str, float] = self.about.get("seen", {})
        return found

    @property
    def fitted(self) -> frozenset[str]:
        """The paths that the fit was for."""
        return frozenset(self.about.get("fitted", self.priors))

    @property
    def models(self) -> frozenset[str]:
        """The models whose discrepancy it has."""
        return frozenset(self.about.get("models", [self.of]))

    @property
    def is_rough(self) -> bool:
        """Whether its discrepancy has a part without correlation between sizes: the column `ROUGH`."""
        return bool(self.about.get("rough", False))

    def column(self, name: str) -> NDArray[np.float64]:
        """The draws [rows] of a path, in base units, or of `DISCREPANCY`. InputError if the file cannot be read."""
        found = _table(self.file, stamp(self.file))
        if name not in found:
            raise _unreadable(f"it has no column '{name}'", self.file)
        return found[name]

    def quantiles(self, name: str, at: Sequence[float]) -> list[float]:
        """Those of a `column`."""
        import numpy as np

        return [float(v) for v in np.quantile(self.column(name), at)]

    def holds(self, prior: Number) -> bool:
        """Whether it has draws of this number under this prior: a variant that states another range has another prior."""
        if prior.path not in self.priors:
            return False
        low, high, *_ = self.priors[prior.path]
        return _alike(float(low), prior.low) and _alike(float(high), prior.high)


def _alike(a: float, b: float) -> bool:
    return abs(a - b) <= _CLOSE * max(abs(a), abs(b))


def read(file: Path) -> PosteriorFile:
    """The posterior in ``file``, without its draws. InputError if it is none."""
    return _read(file, stamp(file))


def write(file: Path, columns: Mapping[str, NDArray[np.floating[Any]]], about: Mapping[str, Any]) -> None:
    """Writes draws (column -> [draws]) and what is known of them. OSError if the file cannot be written."""
    import numpy as np

    draws = np.array([columns[name] for name in columns], dtype=np.float32)
    with file.open("wb") as out:
        np.savez_compressed(out, names=np.array(list(columns)), draws=draws, about=np.array(json.dumps(about, sort_keys=True)))


@lru_cache(maxsize=256)
def _read(file: Path, stamped: tuple[int, int] | None) -> PosteriorFile:
    try:
        about = json.loads(str(_arrays(file, "about")[0]))
        return PosteriorFile(file, str(about["of"]), str(about["group"]), {**about, "priors": dict(about["priors"])})
    except _NO_POSTERIOR as error:
        raise _unreadable(str(error), file) from None


def _arrays(file: Path, *names: str) -> list[NDArray[Any]]:
    import numpy as np  # only where there is something to read: a card without a posterior takes half of the time

    if not zipfile.is_zipfile(file):
        raise ValueError("it is no .npz file")
    with np.load(file, allow_pickle=False) as found:
        return [found[name] for name in names]


def _unreadable(why: str, file: Path) -> InputError:
    said = f"cannot read this posterior: {why}; make it again with 'retrompi posterior find'"
    return InputError(said, file, code="unreadable-file")


@lru_cache(maxsize=64)
def _table(file: Path, stamped: tuple[int, int] | None) -> dict[str, NDArray[np.float64]]:
    try:
        names, draws = _arrays(file, "names", "draws")
        return {str(name): column.astype(float) for name, column in zip(names, draws, strict=True)}
    except _NO_POSTERIOR as error:
        raise _unreadable(str(error), file) from None


def word(left: float) -> str:
    """A word for how well the data determine a parameter of whose prior variance the share ``left`` remains: ``determined``, ``partly`` or
    ``not determined``."""
    return "determined" if left <= DETERMINED else "not determined" if left >= NOT_DETERMINED else "partly"


def files(cls: type[RuntimeModel]) -> list[Path]:
    """The files of `at_hand`."""
    classes = (k for k in cls.__mro__ if issubclass(k, RuntimeModel) and k.__dict__.get("name"))
    names = [k.name for k in classes if k.folder() == cls.folder()]
    own = (cls.folder() / (f"posterior-{variant}.npz" if variant else "posterior.npz") for variant in
           (name.partition(":")[2] for name in names))
    first = [f for f in own if f.is_file()][:1]
    of_models = (f for place in paths.places("models") for f in sorted(place.glob("*/posterior.npz")) if f.parent != cls.folder())
    of_papers = (f for folder in paths.paper_dirs() for f in sorted(folder.glob("posterior-*.npz")))
    return list(dict.fromkeys((*first, *of_models, *of_papers)))


def at_hand(cls: type[RuntimeModel]) -> list[PosteriorFile]:
    """Every posterior that a run of a model may draw from: first the model's own, of a variant without one that of the variant or model
    that it inherits from; those of other models; those of papers. InputError for a file that cannot be read.
    """
    return [read(f) for f in files(cls)]


@dataclass(frozen=True)
class Applied:
    """The distributions that a run draws from: path -> posterior, and the posterior that has the model's discrepancy (None: its prior)."""

    paths: Mapping[str, PosteriorFile]
    discrepancy: PosteriorFile | None

    @property
    def groups(self) -> list[str]:
        """The joint posteriors, by name."""
        both = [*self.paths.values(), *([self.discrepancy] if self.discrepancy is not None else [])]
        return sorted({p.group for p in both})

    @property
    def seen(self) -> dict[str, float]:
        """Path -> the share of the prior's variance that is left."""
        return {path: float(p.seen.get(path, 1.0)) for path, p in self.paths.items()}

    def warnings(self) -> list[str]:
        """A line for each posterior that was found with other code of its models, and for each that has not converged."""
        used = dict.fromkeys([*self.paths.values(), *([self.discrepancy] if self.discrepancy is not None else [])])
        told = []
        for p in used:
            if any(_code(name) != then for name, then in p.about.get("model_hash", {}).items()):
                told.append(f"the posterior of {p.of} is older than its model; 'retrompi posterior find' finds it again")
            if p.about.get("converged") is False:
                told.append(f"the posterior of {p.of} has not converged")
        return list(dict.fromkeys(told))


def _code(model: str) -> str:
    try:
        return registry.model(model).code_hash()
    except UsageError:
        return ""


def posteriors_for(cls: type[RuntimeModel], priors: Sequence[Number]) -> Applied:
    """The posteriors that a run of the model ``cls`` with these ``priors`` draws from. InputError for a file that cannot be read.

    A joint posterior applies to a run that has a number that it was fitted to. Where two have a path, the one whose fit was for it gives
    it, otherwise the one with more of the run's paths.
    """
    groups: dict[str, list[PosteriorFile]] = {}
    for posterior in at_hand(cls):
        groups.setdefault(posterior.group, []).append(posterior)
    mine, base = {p.path for p in priors}, cls.name.partition(":")[0]
    use = {name: files for name, files in groups.items() if any(f.fitted & mine for f in files)}
    shared = {name: len({p.path for p in priors for f in files if f.holds(p)}) for name, files in use.items()}
    order = {name: i for i, name in enumerate(groups)}
    found: dict[str, PosteriorFile] = {}
    for prior in priors:
        having = [(name, f) for name, files in use.items() for f in files if f.holds(prior)]
        if having:
            found[prior.path] = min(having, key=lambda h: (prior.path not in h[1].fitted, -shared[h[0]], order[h[0]]))[1]
    own = _first(f for files in groups.values() for f in files if f.file.parent == cls.folder())
    return Applied(found, own or _first(f for files in use.values() for f in files if base in f.models))


def _first(found: Iterable[PosteriorFile]) -> PosteriorFile | None:
    return next(iter(found), None)
