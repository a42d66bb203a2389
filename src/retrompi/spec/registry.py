"""Models, platforms and scenarios by name or by path, found by scanning their folders.

Models and platforms are looked for in the package, then in the folders of the papers at hand, then in the user's own folders
(``paths.places``); for equal names, the first is used. The error for an unknown name lists the nearest and the valid ones.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import re
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from weakref import WeakKeyDictionary

from retrompi.base import paths, untrusted
from retrompi.base.errors import InputError, RetrompiError, UsageError, nearest
from retrompi.base.files import exists, is_dir, is_file
from retrompi.spec import model as of_model
from retrompi.spec.machine import composition, machines, platform_file, simgrid_platform
from retrompi.spec.model import RuntimeModel
from retrompi.spec.needs import lacks
from retrompi.spec.platform import Platform
from retrompi.spec.runtime.users_code import of_package, users_code
from retrompi.spec.values import Values

__all__ = [
    "FIRST_MODEL",
    "FIRST_PLATFORM",
    "folder_of",
    "forget",
    "is_platform_name",
    "load_errors",
    "model",
    "model_names",
    "models",
    "origin",
    "own_platform",
    "own_platforms",
    "part",
    "platform",
    "platform_names",
    "platforms",
    "resolve",
    "shipped_models",
    "shipped_platform",
    "toml_file",
    "toml_files",
]

_LOADING = threading.Lock()

FIRST_MODEL = "wmpi"
"""What a page or a command begins with that is given no model."""
FIRST_PLATFORM = "nt-pair"
"""Where a model is simulated that names no platform of its own."""


def _folders_in(place: Path) -> dict[str, Path]:
    """Name -> folder of the models in ``place``; {} if there is no such folder."""
    entries = sorted(place.iterdir()) if place.is_dir() else []
    return {e.name: e for e in entries if e.is_dir() and not e.name.startswith(("_", ".")) and (e / "__init__.py").is_file()}


def _users_models() -> dict[str, Path]:
    """Name -> folder of the models of the papers at hand and of the user, except those with the name of a model of the package."""
    return _first("models", _folders_in)


def _first(what: str, names_in: Callable[[Path], dict[str, Path]]) -> dict[str, Path]:
    """Name -> place outside the package; of equal names the one in the first of the places."""
    ours, *others = (names_in(place) for place in paths.places(what))
    found: dict[str, Path] = {}
    for names in others:
        found = {**names, **found}
    return {name: place for name, place in found.items() if name not in ours}


def folder_of(name: str) -> Path | None:
    """The folder of the model called ``name``: the package's, else that of a paper at hand, else the user's, else None."""
    if not name or name.startswith(("_", ".")):
        return None
    return next((place / name for place in paths.places("models") if os.path.isfile(place / name / "__init__.py")), None)


def _user_module_name(folder: Path) -> str:
    return f"retrompi_user_model_{folder.name}_{hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:8]}"


def forget(folder: Path) -> None:
    """Reimport a user's model at its next use, after its files have been rewritten."""
    sys.modules.pop(_user_module_name(folder), None)


def _module(folder: Path) -> ModuleType:
    """Import a model folder: one of the package as ``retrompi.models.X``, any other under a name derived from its path."""
    ours = of_package(folder)
    name = f"retrompi.models.{folder.name}" if ours else _user_module_name(folder)
    if not ours and (root := untrusted.root_of(folder)) is not None:
        raise InputError(f"this model came in a packed study and is not trusted: read it, then run the study with --trust, or remove "
                         f"{root / untrusted.MARK}", folder / "__init__.py", code="untrusted-code")
    try:
        with users_code(folder, "this model cannot be loaded", any_folder=True):
            if ours:
                return importlib.import_module(name)
            with _LOADING:
                return _module_from(folder, name)
    except BaseException:
        sys.modules.pop(name, None)
        raise


def _module_from(folder: Path, name: str) -> ModuleType:
    """Import a folder outside any package, once."""
    if name in sys.modules:
        return sys.modules[name]
    file = folder / "__init__.py"
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=[str(folder)])
    if spec is None or spec.loader is None:
        raise InputError("cannot be imported as a model", file, code="broken-model")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    exec(compile(_of_today(file.read_text(encoding="utf-8")), file, "exec"), module.__dict__)
    return module


_MOVED = {
    "calibrated": "spec.calibrated_range", "collectives": "spec.collectives", "fitted": "measure.fit", "fitted.model": "sim.fitted",
    "platform": "spec.platform", "runtime": "spec.model", "units": "base.units",
}


def _of_today(source: str) -> str:
    """The source of a model with its imports updated to version 0.8: users' folders may hold fits of earlier versions."""
    source = re.sub(r"^from retrompi import registry$", "from retrompi.spec import registry", source, flags=re.MULTILINE)
    names = "|".join(map(re.escape, _MOVED))
    return re.sub(rf"^from retrompi\.({names}) import ", lambda m: f"from retrompi.{_MOVED[m[1]]} import ", source, flags=re.MULTILINE)


def _classes(folder: Path) -> dict[str, type[RuntimeModel]]:
    """Name -> model of one folder, the main one first; it must be named like the folder, variants ``folder:...``."""
    module = _module(folder)
    known = _CLASSES.get(module)
    if known is None:
        with users_code(folder, "this model cannot be loaded", any_folder=True):
            known = _CLASSES[module] = _classes_in(module, folder)
    return known


_CLASSES: WeakKeyDictionary[ModuleType, dict[str, type[RuntimeModel]]] = WeakKeyDictionary()


def _classes_in(module: ModuleType, folder: Path) -> dict[str, type[RuntimeModel]]:
    found: dict[str, type[RuntimeModel]] = {}
    for value in vars(module).values():
        if not (isinstance(value, type) and issubclass(value, RuntimeModel)) or "name" not in vars(value):
            continue
        if not (value.__module__ == module.__name__ or value.__module__.startswith(module.__name__ + ".")):
            continue
        if value.name.partition(":")[0] != folder.name:
            raise InputError(
                f"model '{value.name}' must be named '{folder.name}' or '{folder.name}:VARIANT'", folder / "__init__.py",
                code="broken-model",
            )
        if found.get(value.name, value) is not value:
            raise InputError(f"two models are named '{value.name}'", folder / "__init__.py", code="broken-model")
        found[value.name] = value
    if folder.name not in found:
        raise InputError(f"no RuntimeModel named '{folder.name}' in this folder", folder / "__init__.py", code="broken-model")
    return dict(sorted(found.items(), key=lambda item: (item[0] != folder.name, item[0])))


def models() -> dict[str, type[RuntimeModel]]:
    """Name -> model for every model and variant, the package's first; raises InputError for a broken model of the package.

    A broken model of the user is left out (`load_errors` gives the reason), so that the others stay usable.
    """
    found = {name: cls for folder in _folders_in(paths.models_dir()).values() for name, cls in _classes(folder).items()}
    for folder in _users_models().values():
        with suppress(RetrompiError):
            found |= _classes(folder)
    return found


def load_errors(models: bool = True) -> dict[str, RetrompiError]:
    """Name -> error of the user's models, unless ``models`` is False (finding out runs them), and platforms that cannot be loaded."""
    found: dict[str, RetrompiError] = {}
    tries: list[tuple[str, Path, Callable[[Path], object]]] = [(n, f, platform_file.load) for n, f in _users_platforms().items()]
    if models:
        tries = [*((n, f, _classes) for n, f in _users_models().items()), *tries]
    for name, place, load in tries:
        try:
            load(place)
        except RetrompiError as error:
            found[name] = error
    return found | machines.load_errors()


def origin(where: Path | None) -> str:
    """The origin of a model folder or platform file: ``retrompi`` (the package), ``user`` (the user's folder) or the path of its parent."""
    if where is None:
        return ""
    parent = where.parent.resolve()
    parent = parent.parent if parent.name in ("hosts", "networks") else parent
    if parent in (paths.models_dir().resolve(), paths.platforms_dir().resolve()):
        return "retrompi"
    return "user" if parent in (paths.user_models_dir().resolve(), paths.user_platforms_dir().resolve()) else str(parent)


def shipped_models() -> list[str]:
    """The names of the package's models, without their variants; none is imported."""
    return list(_folders_in(paths.models_dir()))


def model_names() -> list[str]:
    """The names of `models`."""
    return list(models())


def _is_path(text: str) -> bool:
    return "/" in text or "\\" in text or text in (".", "..") or text.endswith(".toml")


def model(name_or_path: str) -> type[RuntimeModel]:
    """A model by name (``wmpi``, ``wmpi:additive-stall``) or by the path of a folder (``./mine``, ``./mine:variant``).

    Raises UsageError for an unknown one, InputError for one that cannot be loaded.
    """
    base, _, variant = name_or_path.partition(":")
    if _is_path(name_or_path):
        # The path itself may contain a colon; then the whole text is the folder.
        folder = Path(name_or_path) if is_dir(name_or_path) else Path(base)
        variant = "" if is_dir(name_or_path) else variant
        if not exists(folder):
            raise UsageError(f"--model {name_or_path[:200]} is not a folder; give a model's name or a folder's path", code="unknown-model")
        if folder.is_file() and folder.name == "__init__.py":
            folder = folder.parent
        folder = folder.resolve()
        if not (folder / "__init__.py").is_file():
            problem = "has no __init__.py" if folder.is_dir() else "is not a folder"
            raise UsageError(f"--model {name_or_path}: {problem}; give a model's name or the path of its folder", code="unknown-model")
        found = _classes(folder)
        wanted = f"{folder.name}:{variant}" if variant else folder.name
    else:
        place = folder_of(base)
        # A model must stay usable if another one is broken, so only its own folder is imported.
        found = models() if place is None else _classes(place)
        wanted = name_or_path
    if wanted not in found:
        raise UsageError(f"no model '{name_or_path}'{nearest(wanted, found)}", code="unknown-model")
    return found[wanted]


def own_platform(model_or_name: type[RuntimeModel] | str) -> str:
    """The platform of a model where a question names none: the first that the model is calibrated on.

    A user's model that names none is simulated on `FIRST_PLATFORM`. Raises the errors of `model`.
    """
    cls = model(model_or_name) if isinstance(model_or_name, str) else model_or_name
    return next(iter(own_platforms(cls)), FIRST_PLATFORM)


def own_platforms(cls: type[RuntimeModel]) -> Sequence[str]:
    """The platforms that a model is calibrated on and can run on, its variants being of the same range; () where it names none."""
    named = () if cls.calibrated is None else cls.calibrated.platforms
    return [name for name in named if len(named) == 1 or not lacks(cls.needs, platform(name))]


def toml_files(folder: Path) -> dict[str, Path]:
    return {file.stem: file for file in sorted(folder.glob("*.toml")) if not file.name.endswith(".fit.toml")}


def _users_platforms() -> dict[str, Path]:
    """Name -> file of the platforms of the papers at hand and of the user, without those whose name the package has."""
    return _first("platforms", toml_files)


def _platform_files() -> dict[str, Path]:
    return {**toml_files(paths.platforms_dir()), **_users_platforms()}


def toml_file(kind: str, files: dict[str, Path], name_or_path: str) -> Path:
    if name_or_path in files:
        return files[name_or_path]
    if _is_path(name_or_path):
        path = Path(name_or_path)
        if not is_file(path):
            raise UsageError(f"no {kind} file {name_or_path}; give a {kind}'s name or the path of its .toml file", code=f"unknown-{kind}")
        return path
    raise UsageError(f"no {kind} '{name_or_path}'{nearest(name_or_path, files)}", code=f"unknown-{kind}")


def platform_names() -> list[str]:
    """The names of `platforms`, without reading the files."""
    return list(_platform_files())


def platforms() -> dict[str, Platform]:
    """Name -> platform, the package's first; a user's platform that cannot be read is left out (`load_errors`)."""
    found = {name: platform_file.load(file) for name, file in toml_files(paths.platforms_dir()).items()}
    for name, file in _users_platforms().items():
        with suppress(RetrompiError):
            found[name] = platform_file.load(file)
    return found


def platform(name_or_path: str) -> Platform:
    """A platform by name (``nt-pair``), by the path of a TOML file, or composed of the library's hosts and networks
    (``nt4-p6-200*8@switch-100``; ``nt4-p6-200``: one machine on its own). ``nt-pair*64`` has 64 hosts (`Platform.of_size`), and
    ``nt4-p6-200@cluster.xml`` those of a SimGrid platform file (`retrompi.spec.machine.simgrid_platform`).

    Raises UsageError for an unknown one, InputError for an invalid file.
    """
    if simgrid_platform.is_xml(name_or_path):
        found = simgrid_platform.resolve_name(name_or_path)
        return platform_file.load(found) if isinstance(found, Path) else found
    base, star, size = name_or_path.rpartition("*")
    sized = bool(star and base and size.isdecimal() and len(size) < 9)
    if sized and ("@" in base or base not in machines.files("host") or base in _platform_files()):
        return platform(base).of_size(int(size))
    if not _is_path(name_or_path):
        for place in paths.places("platforms"):
            file = place / f"{name_or_path}.toml"
            if not name_or_path.endswith(".fit") and is_file(file):
                return platform_file.load(file)
        if sized or any(c in name_or_path for c in "@+") or name_or_path in machines.files("host"):
            return machines.platform(composition.parse(name_or_path))
        if name_or_path in machines.files("network"):
            raise UsageError(f"'{name_or_path}' is a network: a platform is its hosts and a network, HOST*N@{name_or_path}, e.g. "
                             f"nt4-p6-200*2@{name_or_path} ('retrompi platforms list' has the hosts)", code="unknown-platform")
    return platform_file.load(toml_file("platform", {**_platform_files(), **machines.files("host")}, name_or_path))


def part(name: str) -> machines.Machine | machines.Network | None:
    """The host or network of the library with this name, or in a file in a folder hosts or networks; None if there is none."""
    if _is_path(name):
        file = Path(name)
        return machines.at(file) if file.resolve().parent.name in ("hosts", "networks") and is_file(file) else None
    if name in _platform_files():
        return None
    if name in machines.files("host"):
        return machines.host(name)
    return machines.network(name) if name in machines.files("network") else None


def shipped_platform(text: str) -> bool:
    """Whether a platform's name, ``NAME*N`` or a composition needs nothing but files of the package."""
    ours = paths.platforms_dir()
    base = composition.without_size(text)
    if _is_path(base):
        return False
    if (ours / f"{base}.toml").is_file():
        return True
    try:
        what = composition.parse(base)
    except UsageError:
        return False
    needed = [ours / "hosts" / f"{host}.toml" for host, _ in what.terms]
    return all(map(is_file, [*needed, *([ours / "networks" / f"{what.network}.toml"] if what.network else [])]))


def is_platform_name(name: str, most: int) -> bool:
    """Whether ``name`` is a platform's, or composes at most ``most`` hosts of the library. A path is not a name."""
    if name in _platform_files():
        return True
    try:
        what = composition.parse(name)
    except UsageError:
        return False
    networks = {"", *machines.files("network")}
    return what.hosts <= most and what.network in networks and {host for host, _ in what.terms} <= set(machines.files("host"))


def resolve(
    model_or_name: type[RuntimeModel] | str, platform_or_name: Platform | str, sets: Mapping[str, str] | Sequence[str] = ()
) -> tuple[Values, Platform]:
    """`retrompi.spec.model.resolve`, also by name."""
    cls = model(model_or_name) if isinstance(model_or_name, str) else model_or_name
    loaded = platform(platform_or_name) if isinstance(platform_or_name, str) else platform_or_name
    return of_model.resolve(cls, loaded, sets)
