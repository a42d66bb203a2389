"""Predictions: every model on machines that it was not fitted to (the table of transfer), and values that were published only later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from retrompi.api.checking import check_arguments
from retrompi.api.frames import Progress, Report, Row, Table, as_store, reporting
from retrompi.api.programs import Rows
from retrompi.base.errors import UsageError

if TYPE_CHECKING:
    from retrompi.papers.predict.scores import Compared, Score
    from retrompi.store import Store

__all__ = ["Predictions", "Transfer", "made_again", "predict", "transfer", "transfer_of"]


class Transfer(Table):
    """Every model on every machine it is known to have run on: a row for each number and each group of statements.

    >>> retrompi.transfer("mpibip").rows[0]["use"]    # numbers in their unit (s, B/s)    # doctest: +SKIP
    'fitted'
    """

    def __init__(self, rows: Sequence[Row], model: str) -> None:
        self._rows, self.model = rows, model

    @property
    def title(self) -> str:
        """The model, or all of them."""
        return f"{self.model or 'every model'} on every machine it is known to have run on"

    @property
    def rows(self) -> Sequence[Row]:
        """model, machine, platform, what, size_B, published, low, high, simulated, ratio, unit, use (fitted, input, held out, blind),
        ref, ..."""
        return self._rows


class Predictions(Table):
    """Predictions made before the true values were known to the project: a row for each size, times in s.

    >>> retrompi.predict("mpibip-lanai9").rows[0]["nominal_s"] > 0
    True
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        """The predictions that were asked for."""

    @property
    def title(self) -> str:
        """The names of the predictions."""
        return ", ".join(self.names) if len(self.names) <= 3 else f"{len(self.names)} predictions"

    @property
    def rows(self) -> Sequence[Row]:
        """prediction, model, platform, placement, what, size_B, nominal_s, low_s, median_s, high_s (5 to 95 %), parameters_low_s,
        parameters_high_s, date, commit."""
        from retrompi.papers.predict import predictions

        files, shared = predictions.shipped_predictions(), ("model", "platform", "placement", "date", "commit")
        told = [(name, files[name]) for name in self.names if name in files]
        return [{"prediction": name, **{k: f[k] for k in shared}, **v} for name, f in told for v in f["value"]]

    @property
    def scored(self) -> list[Score]:
        """How the predicted curves compare with what has been published of them since."""
        from retrompi.papers.predict import scores

        return [s for s in scores.scores() if s.prediction in self.names]

    @property
    def numbers(self) -> list[Compared]:
        """Single numbers that have been published since, beside the predicted ones."""
        from retrompi.papers.predict import scores

        return [n for n in scores.numbers() if n.prediction in self.names]

    @property
    def scores(self) -> Table:
        """prediction, points, median_error, raw_error, bias, worst, inside (shares), interval_score of every curve published since.
        UsageError if there is none."""
        if not self.scored and not self.numbers:
            told = "nothing has been published of these predictions since; 'retrompi predict --score' lists those that have a score"
            raise UsageError(told, code="no-results")
        return Rows(f"scores of {self.title}", [s.row() for s in self.scored])

    def differing(self, folder: str | Path | None = None, jobs: int | None = None, progress: Progress | None = None) -> list[str]:
        """Simulates the predictions again, ``jobs`` runs at a time, and returns those that differ from their files (in ``folder``; default:
        those shipped). UsageError for a file that cannot be read."""
        with reporting(progress, "predictions") as report:
            return differing_of(self.names, None if folder is None else Path(folder), jobs, report)


def made_again(names: Sequence[str], jobs: int | None, report: Report) -> Iterator[tuple[str, str]]:
    """Each prediction, simulated again, with the text of its file."""
    from retrompi.papers.predict import predictions
    from retrompi.papers.reproduce.reproduction import WORKERS

    for i, name in enumerate(names):

        def part(done: int, total: int, what: str, before: int = i) -> None:
            report(before * 1000 + 1000 * done // total, len(names) * 1000, what)

        yield name, predictions.file_text(predictions.simulate_prediction(name, part, jobs or WORKERS))


def differing_of(names: Sequence[str], folder: Path | None, jobs: int | None, report: Report) -> list[str]:
    """Simulates the predictions again and returns those that differ from their files in ``folder``."""
    from retrompi.papers.predict import predictions

    differ = []
    for name, text in made_again(names, jobs, report):
        file = predictions.file_of(name, folder)
        try:
            if not predictions.same(text, file.read_text(encoding="utf-8")):
                differ.append(name)
        except OSError as error:
            raise UsageError(f"cannot read {file}: {error.strerror}", code="unreadable-file") from None
    return differ


def transfer_of(model: str, store: Store, fresh: bool, report: Report) -> Transfer:
    """The table of transfer of a model and its variants; "": of all."""
    from retrompi.papers.predict import transfer
    from retrompi.spec import registry

    if model:
        registry.model(model)  # names the nearest of an unknown one
    return Transfer(transfer.rows(store, model, fresh=fresh, progress=report), model)


@check_arguments
def transfer(
    model: str | Path = "", *, store: Store | Path | str | None = None, fresh: bool = False, progress: Progress | None = None
) -> Transfer:
    """Every model (or one and its variants) on every machine it is known to have run on, simulated and published.

    Numbers are in their unit (s, B/s). ``use`` says what is known: a fit saw it, it is an input of the model, it is held out, or it is
    blind: not known to the project. Raises UsageError for an unknown model.

    >>> retrompi.transfer("mpibip").frame[["machine", "what", "published", "simulated"]]    # doctest: +SKIP
    """
    with reporting(progress, "transfer") as report:
        return transfer_of(str(model), as_store(store), fresh, report)


@check_arguments
def predict(*names: str) -> Predictions:
    """The predictions of these names (those of a paper for its key; all without any), times in s, with what is known of them since.

    >>> found = retrompi.predict("mpibip-lanai9")
    >>> found.rows[0]["low_s"] < found.rows[0]["high_s"]
    True
    """
    from retrompi.papers.predict import predictions

    return Predictions(predictions.select_names(names))
