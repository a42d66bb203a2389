"""The regions in which a user's code runs, of a model or a paper: what it raises is an error of the user's file, not an internal one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from retrompi.base import paths
from retrompi.base.errors import InputError, RetrompiError

__all__ = ["of_package", "users_code"]


def of_package(folder: Path) -> bool:
    """Whether a model's folder is one of the package, whose errors are ours."""
    return folder.parent == paths.models_dir() or folder.parent.resolve() == paths.models_dir().resolve()


@contextmanager
def users_code(
    folder: Path, problem: str = "this model fails", *, any_folder: bool = False, passing: tuple[type[Exception], ...] = (),
    code: str = "broken-model",
) -> Iterator[None]:
    """In the body code of the user's in ``folder`` runs. What it raises becomes an InputError: ``problem``, file, line and ``code``.

    Passed on unchanged: anything from a model of the package (unless ``any_folder``), KeyboardInterrupt, what already is one line about
    the user's input, and ``passing``.
    """
    try:
        yield
    except (Exception, SystemExit, GeneratorExit) as error:
        told = isinstance(error, passing) or (isinstance(error, RetrompiError) and error.exit_code == 2)
        if told or (of_package(folder) and not any_folder):
            raise
        raise InputError(f"{problem}: {_error_text(error)}", *_line_in(error, folder), code=code) from error


def _error_text(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # the class is the user's, and so is its text
        return type(error).__name__


def _line_in(error: BaseException, folder: Path) -> tuple[Path, int | None]:
    """The innermost line of the traceback that is inside ``folder``."""
    if isinstance(error, SyntaxError) and error.filename:
        return Path(error.filename), error.lineno
    place: tuple[Path, int | None] = (folder / "__init__.py", None)
    trace = error.__traceback__
    while trace is not None:
        file = Path(trace.tb_frame.f_code.co_filename)
        if folder.resolve() in file.resolve().parents:
            place = (file, trace.tb_lineno)
        trace = trace.tb_next
    return place
