"""Models, platforms and scenarios by name or by path: found by scanning their folders, never by a list.

A wrong name is answered with the nearest and the valid ones.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from retrompi import paths
from retrompi import platform as _platform
from retrompi.errors import InputError, RetrompiError, UsageError, nearest
from retrompi.platform import Platform
from retrompi.runtime import RuntimeModel

if TYPE_CHECKING:
    from retrompi.scenario import Scenario

__all__ = ["model", "model_names", "models", "platform", "platform_names", "platforms", "scenario", "scenario_names",
           "scenarios"]  # fmt: skip

_LOADING = threading.Lock()


def _model_folders() -> list[Path]:
    return sorted(
        entry
        for entry in paths.models_dir().iterdir()
        if entry.is_dir() and not entry.name.startswith(("_", ".")) and (entry / "__init__.py").is_file()
    )


def _module(folder: Path) -> ModuleType:
    """Import a model folder: one of ours as ``retrompi.models.X``, any other under a name made from its path."""
    ours = folder.parent.resolve() == paths.models_dir().resolve()
    tag = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:8]
    name = f"retrompi.models.{folder.name}" if ours else f"retrompi_user_model_{folder.name}_{tag}"
    try:
        if ours:
            return importlib.import_module(name)
        with _LOADING:
            return _module_from(folder, name)
    except RetrompiError:
        sys.modules.pop(name, None)
        raise
    except Exception as error:  # whatever a newcomer's file raises is about that file, not about us
        sys.modules.pop(name, None)
        line = _line_in(error, folder)
        raise InputError(f"this model cannot be loaded: {type(error).__name__}: {error}", line[0], line[1]) from error


def _module_from(folder: Path, name: str) -> ModuleType:
    """Import a folder that no package contains, once."""
    if name in sys.modules:
        return sys.modules[name]
    file = folder / "__init__.py"
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=[str(folder)])
    if spec is None or spec.loader is None:
        raise InputError("cannot be imported as a model", file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


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


def _classes(folder: Path) -> dict[str, type[RuntimeModel]]:
    """The models of one folder, the main one first; it must be named like the folder, variants ``folder:...``."""
    module = _module(folder)
    found: dict[str, type[RuntimeModel]] = {}
    for value in vars(module).values():
        if not (isinstance(value, type) and issubclass(value, RuntimeModel)) or "name" not in vars(value):
            continue
        if not (value.__module__ == module.__name__ or value.__module__.startswith(module.__name__ + ".")):
            continue
        if value.name.partition(":")[0] != folder.name:
            raise InputError(
                f"model '{value.name}' must be named '{folder.name}' or '{folder.name}:VARIANT'", folder / "__init__.py"
            )
        if found.get(value.name, value) is not value:
            raise InputError(f"two models are named '{value.name}'", folder / "__init__.py")
        found[value.name] = value
    if folder.name not in found:
        raise InputError(f"no RuntimeModel named '{folder.name}' in this folder", folder / "__init__.py")
    return dict(sorted(found.items(), key=lambda item: (item[0] != folder.name, item[0])))


def models() -> dict[str, type[RuntimeModel]]:
    """Every model and variant by name; raises InputError when a folder holds a broken one."""
    return {name: cls for folder in _model_folders() for name, cls in _classes(folder).items()}


def model_names() -> list[str]:
    """The names of `models`."""
    return list(models())


def _is_path(text: str) -> bool:
    return "/" in text or "\\" in text or text in (".", "..") or text.endswith(".toml")


def model(name_or_path: str) -> type[RuntimeModel]:
    """A model by name (``wmpi``, ``wmpi:additive-stall``) or by a folder's path (``./mine``, ``./mine:variant``)."""
    base, _, variant = name_or_path.partition(":")
    if _is_path(name_or_path):
        # A path may hold a colon of its own; then the whole text is the folder.
        folder = Path(name_or_path) if Path(name_or_path).is_dir() else Path(base)
        variant = "" if Path(name_or_path).is_dir() else variant
        if folder.is_file() and folder.name == "__init__.py":
            folder = folder.parent
        folder = folder.resolve()
        if not (folder / "__init__.py").is_file():
            problem = "has no __init__.py" if folder.is_dir() else "is not a folder"
            raise UsageError(f"--model {name_or_path}: {problem}; give a model's name or the path of its folder")
        found = _classes(folder)
        wanted = f"{folder.name}:{variant}" if variant else folder.name
    else:
        folder = paths.models_dir() / base
        # One good model must stay usable beside a broken neighbour, so only the folder asked for is imported.
        found = _classes(folder) if base and (folder / "__init__.py").is_file() else models()
        wanted = name_or_path
    if wanted not in found:
        raise UsageError(f"no model '{name_or_path}'{nearest(wanted, found)}")
    return found[wanted]


def _toml_files(folder: Path) -> dict[str, Path]:
    return {file.stem: file for file in sorted(folder.glob("*.toml")) if not file.name.endswith(".fit.toml")}


def _toml(kind: str, folder: Path, name_or_path: str) -> Path:
    files = _toml_files(folder)
    if name_or_path in files:
        return files[name_or_path]
    if _is_path(name_or_path):
        path = Path(name_or_path)
        if not path.is_file():
            raise UsageError(f"no {kind} file {name_or_path}; give a {kind}'s name or the path of its .toml file")
        return path
    raise UsageError(f"no {kind} '{name_or_path}'{nearest(name_or_path, files)}")


def platform_names() -> list[str]:
    """The names of `platforms`, without reading the files."""
    return list(_toml_files(paths.platforms_dir()))


def platforms() -> dict[str, Platform]:
    """Every platform by name."""
    return {name: _platform.load(file) for name, file in _toml_files(paths.platforms_dir()).items()}


def platform(name_or_path: str) -> Platform:
    """A platform by name (``nt-pair``) or by the path of a TOML file; ``nt-pair*64`` has 64 hosts (`Platform.of_size`)."""
    base, star, size = name_or_path.rpartition("*")
    if star and base and size.isdecimal() and len(size) < 9:
        return platform(base).of_size(int(size))
    return _platform.load(_toml("platform", paths.platforms_dir(), name_or_path))


def scenario_names() -> list[str]:
    """The names of `scenarios`, without reading the files."""
    return list(_toml_files(paths.scenarios_dir()))


def scenarios() -> dict[str, Scenario]:
    """Every scenario by name."""
    from retrompi import scenario as _scenario

    return {name: _scenario.load(file) for name, file in _toml_files(paths.scenarios_dir()).items()}


def scenario(name_or_path: str) -> Scenario:
    """A scenario by name or by the path of a TOML file."""
    from retrompi import scenario as _scenario

    return _scenario.load(_toml("scenario", paths.scenarios_dir(), name_or_path))
