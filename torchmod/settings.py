"""What a run was asked to do: the command line over the configuration file over the defaults."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from torchmod.basics import Applicability, TorchmodError
from torchmod.words import nearest, version

if TYPE_CHECKING:
    from torchmod.subjects import Versions

FILE = "torchmod.toml"
PYPROJECT = "pyproject.toml"
VENDORED = (
    *("third_party", "thirdparty", "third-party", "3rdparty"),
    *("vendor", "vendored", "_vendor", "extern", "external", "externals"),
)
"""Folders that hold copies of other projects."""
INSTALLED = (
    *("__pycache__", "__pypackages__", "site-packages", "node_modules", "*.egg", "*.egg-info"),
    *("_build", "build", "dist", "env", "venv", "virtualenv"),
)
"""Folders that hold what a tool put there; those whose name starts with a dot are left out as well."""
NEWEST = "2.13"


class Settings(NamedTuple):
    """Everything a run depends on. Field names are the configuration's keys, with ``_`` for ``-``."""

    select: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    unsafe: bool = False
    target: str = NEWEST
    written_for: str = ""
    exclude: tuple[str, ...] = (*INSTALLED, *VENDORED)
    extend_exclude: tuple[str, ...] = ()
    force_exclude: bool = False
    max_file_size: int = 5_000_000
    plugins: tuple[str, ...] = ()
    required_version: str = ""
    jobs: int = 0
    """Processes; 0 is one for each processor that may be used."""
    root: str = ""
    """The folder that exclusions are relative to: where the configuration lies, else the working directory."""

    @property
    def levels(self) -> frozenset[Applicability]:
        """The applicabilities that are applied."""
        return frozenset([Applicability.SAFE, Applicability.UNSAFE] if self.unsafe else [Applicability.SAFE])

    @property
    def versions(self) -> Versions:
        """The two facts about torch's version, as transforms see them."""
        from torchmod.subjects import Versions

        return Versions(version(self.target), version(self.written_for) if self.written_for else None)


def load(
    start: str, *, config: str | None, isolated: bool, overrides: Mapping[str, Any], exclude: Sequence[str] = ()
) -> Settings:
    """The settings for a run. Raises TorchmodError, naming file and key, when the configuration is wrong.

    start: the folder from which a configuration is looked for, upwards. overrides: fields given on the command line.
    exclude: patterns besides those of the configuration.
    """
    found: dict[str, Any] = {"root": os.getcwd()}
    path = None if isolated else config or _nearest_file(start)
    if path is not None:
        found = {"root": os.path.dirname(os.path.abspath(path)), **_read(path)}
    settings = Settings(**{**found, **overrides})
    settings = settings._replace(extend_exclude=(*settings.extend_exclude, *exclude))
    _check(settings)
    return settings


def _nearest_file(start: str) -> str | None:
    """The configuration nearest above a folder: a torchmod.toml, or a pyproject.toml that has our section."""
    folder = os.path.abspath(start)
    while True:
        own = os.path.join(folder, FILE)
        if os.path.isfile(own):
            return own
        shared = os.path.join(folder, PYPROJECT)
        if os.path.isfile(shared) and _mentions_us(shared):
            return shared
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above


def _mentions_us(path: str) -> bool:
    """Whether a pyproject.toml has our section; reading TOML is left for those that hold our name."""
    try:
        with open(path, "rb") as file:
            named = b"torchmod" in file.read()
    except OSError:
        return False
    return named and _section(path) is not None


def _section(path: str) -> object:
    """Our part of a configuration file; None where it has none. Raises TorchmodError."""
    import tomllib

    try:
        with open(path, "rb") as file:
            table = tomllib.load(file)
    except OSError as error:
        raise TorchmodError(f"{path}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TorchmodError(f"{path}: not valid TOML: {error}") from None
    if os.path.basename(path) != PYPROJECT:
        return table
    tool = table.get("tool")
    return tool.get("torchmod") if isinstance(tool, dict) else None


def _read(path: str) -> dict[str, Any]:
    table = _section(path)
    if table is None:
        return {}
    if not isinstance(table, dict):
        raise TorchmodError(f"{path}: `tool.torchmod` must be a table")
    required = table.get("required-version")
    if isinstance(required, str):  # told first: another version may know other settings
        _check_own_version(path, required)
    return {key.replace("-", "_"): _value(path, key, value) for key, value in table.items()}


def _value(path: str, key: str, value: object) -> object:
    """A value of the configuration in the field's own type."""
    defaults = {name.replace("_", "-"): value for name, value in Settings._field_defaults.items() if name != "root"}
    if key not in defaults:
        raise TorchmodError(f"{path}: there is no setting `{key}`{nearest(key, defaults)}")
    default = defaults[key]
    if isinstance(default, tuple):
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
        raise TorchmodError(f"{path}: `{key}` must be a list of strings")
    if type(value) is not type(default):
        kind = {bool: "true or false", int: "a number", str: "a string"}[type(default)]
        raise TorchmodError(f"{path}: `{key}` must be {kind}")
    return value


def _check(settings: Settings) -> None:
    for key, text in (("target", settings.target), ("written-for", settings.written_for)):
        try:
            version(text or NEWEST)
        except TorchmodError as error:
            raise TorchmodError(f"`{key}`: {error}") from None
    if settings.jobs < 0:
        raise TorchmodError("`jobs` must be 0 (one for each processor) or more")


def _check_own_version(path: str, required: str) -> None:
    from torchmod import __version__

    own, bound = version(__version__), required.removeprefix(">=").removeprefix("==").strip()
    try:
        wanted = version(bound)
    except TorchmodError:
        raise TorchmodError(f"{path}: `required-version` must be like 0.1.0 or >=0.1, not `{required}`") from None
    if not (own >= wanted if required.startswith(">=") else own == wanted):
        raise TorchmodError(f"{path}: torchmod {required} is required; this is {__version__}")
