"""What the other files of a repository say: lazily, and only what a question needs.

An own module is looked for next to the file that imports it, then in the folders above, up to the repository's root.
Nothing is imported or run: files are parsed, and their module-level names read.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from torchmod.model import Unreadable
from torchmod.names import Names
from torchmod.source import Source

MAX_BYTES = 1_000_000
_ROOT_SIGNS = (".git", ".hg", "pyproject.toml", "setup.py", "setup.cfg")
_LEVELS = 8


class Project:
    """Module-level names of the files around, kept for one run. ``read`` gives a file's bytes, or raises OSError."""

    def __init__(self, read: Callable[[str], bytes] | None = None) -> None:
        self._read = read or _read_file
        self._names: dict[str, Names | None] = {}
        self._open: set[str] = set()

    def around(self, path: str) -> View:
        """The repository as seen from one file."""
        return View(self, path)

    def names(self, path: str) -> Names | None:
        """The names of another file; None when it cannot be read, or is just being looked at (imports in a circle)."""
        if path in self._open:
            return None
        if path not in self._names:
            self._open.add(path)
            try:
                self._names[path] = self._load(path)
            finally:
                self._open.discard(path)
        return self._names[path]

    def _load(self, path: str) -> Names | None:
        try:
            data = self._read(path)
            if len(data) > MAX_BYTES:
                return None
            return Names(Source.decode(path, data).parse(), self.around(path))
        except (OSError, Unreadable):
            return None


class View:
    """The own modules that a file can import (a `names.Neighbours`)."""

    def __init__(self, project: Project, path: str) -> None:
        self._project = project
        self._folder = os.path.dirname(os.path.abspath(path))
        self._open: set[tuple[str, str]] = set()

    def member(self, module: str, name: str) -> str | None:
        """See `names.Neighbours`."""
        if (module, name) in self._open:
            return None
        path = self._find(module)
        names = self._project.names(path) if path else None
        if names is None or (name not in names.module.bindings and not names.stars):
            return None
        self._open.add((module, name))
        try:
            found = names.resolve_in_module(name).only
        finally:
            self._open.discard((module, name))
        if found is None:
            return None
        return f"{module}{found}" if found.startswith(":") else found

    def exports(self, module: str) -> dict[str, str] | None:
        """See `names.Neighbours`."""
        if module.split(".", maxsplit=1)[0] == "torch":
            from torchmod.knowledge.stars import STARS

            known = STARS.get(module)
            return None if known is None else {name: f"{module}.{name}" for name in known}
        path = self._find(module)
        names = self._project.names(path) if path else None
        if names is None or names.stars:
            return None
        return {
            name: self.member(module, name) or f"{module}:{name}"
            for name in names.module.bindings
            if not name.startswith("_")
        }

    def _find(self, module: str) -> str | None:
        level = len(module) - len(module.lstrip("."))
        parts = module.lstrip(".").split(".") if module.strip(".") else []
        folder = self._folder
        if level:
            for _ in range(level - 1):
                folder = os.path.dirname(folder)
            return _module_file(folder, parts)
        for _ in range(_LEVELS):
            found = _module_file(folder, parts)
            if found:
                return found
            above = os.path.dirname(folder)
            if above == folder or any(os.path.exists(os.path.join(folder, sign)) for sign in _ROOT_SIGNS):
                return None
            folder = above
        return None


def _module_file(folder: str, parts: list[str]) -> str | None:
    base = os.path.join(folder, *parts)
    for candidate in ((f"{base}.py",) if parts else ()) + (os.path.join(base, "__init__.py"),):
        if os.path.isfile(candidate):
            return candidate
    return None


def _read_file(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
