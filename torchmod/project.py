"""What the other files of a repository say: lazily, and only what a question needs.

An own module is looked for next to the file that imports it, then in the folders above, up to the repository's root.
Nothing is imported or run: files are parsed, and their module-level names read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property

from torchmod.model import Unreadable
from torchmod.names import Names
from torchmod.source import Source

MAX_BYTES = 1_000_000
MAX_DEPTH = 8
"""How many files may hand on a name to each other; longer chains are not somebody's code."""
PACKAGE = "__init__.py"
_ROOT_SIGNS = (".git", ".hg", "pyproject.toml", "setup.py", "setup.cfg")
_LEVELS = 8


class Project:
    """Module-level names of the files around, kept for one run. ``read`` gives a file's bytes, or raises OSError."""

    def __init__(self, read: Callable[[str], bytes] | None = None) -> None:
        self._read = read or _read_file
        self._names: dict[str, Names | None] = {}
        self._views: dict[str, View] = {}
        self.depth = 0
        """How many files the question that is being answered was handed on by."""
        self.cuts = 0
        """How many questions were not answered in full; what depends on one must not be kept for the next."""

    def around(self, path: str) -> View:
        """The repository as seen from one file."""
        if path not in self._views:
            self._views[path] = View(self, path)
        return self._views[path]

    def names(self, path: str) -> Names | None:
        """The names of another file; None when it cannot be read."""
        if path not in self._names:
            self._names[path] = self._load(path)
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
        self._is_package = os.path.basename(path) == PACKAGE
        self._open: set[tuple[str, str]] = set()
        self._files: dict[str, tuple[str, ...]] = {}
        self._exports: dict[str, dict[str, str] | None] = {}

    def member(self, module: str, name: str) -> str | None:
        """See `names.Neighbours`."""
        with self._asking(module, name) as may_ask:
            answers = {self._member_of(path, module, name) for path in self.files(module) if may_ask}
        return answers.pop() if len(answers) == 1 else None

    @contextmanager
    def _asking(self, module: str, name: str) -> Iterator[bool]:
        """Whether a question may be handed on: not when it is being asked already (imports in a circle)."""
        if (module, name) in self._open or self._project.depth >= MAX_DEPTH:
            self._project.cuts += 1
            yield False
            return
        self._open.add((module, name))
        self._project.depth += 1
        try:
            yield True
        finally:
            self._project.depth -= 1
            self._open.discard((module, name))

    def _member_of(self, path: str, module: str, name: str) -> str | None:
        names = self._project.names(path)
        if names is None or (name not in names.module.bindings and not names.stars):
            return None
        if names.busy_with(name):
            self._project.cuts += 1
        cuts = self._project.cuts
        found = names.resolve_in_module(name).only
        if self._project.cuts != cuts:
            names.forget()
        if found is None or found.startswith(":"):
            return found and module + found
        return self._seen_from_here(found, module, path)

    def _seen_from_here(self, name: str, module: str, path: str) -> str | None:
        """What another file of the project calls ``name``, as this file would write it; None where it cannot."""
        if not name.startswith("."):
            top = name.partition(":")[0].split(".")[0]
            return name if self.files(top) == self._project.around(path).files(top) else None
        package = module if os.path.basename(path) == PACKAGE else _parent(module)
        rest = name.lstrip(".")
        for _ in range(len(name) - len(rest) - 1):
            package = _parent(package)
        return f"{package}{'' if package.endswith('.') else '.'}{rest}" if package else None

    def exports(self, module: str) -> dict[str, str] | None:
        """See `names.Neighbours`."""
        if module.split(".", maxsplit=1)[0] == "torch":
            from torchmod.knowledge.stars import STARS

            known = STARS.get(module)
            return None if known is None else {name: f"{module}.{name}" for name in known}
        if module in self._exports:
            return self._exports[module]
        cuts = self._project.cuts
        found = self._exports_of(module)
        if self._project.cuts == cuts:
            self._exports[module] = found
        return found

    def _exports_of(self, module: str) -> dict[str, str] | None:
        found: dict[str, str] = {}
        for path in self.files(module):
            public = self._public(path, module)
            if public is None:
                return None
            found |= {name: self.member(module, name) or f"{module}:{name}" for name in sorted(public)}
        return found if self.files(module) else None

    def _public(self, path: str, module: str) -> set[str] | None:
        """What a star import of a file binds."""
        names = self._project.names(path)
        with self._asking(module, "*") as may_ask:
            public = names.exported() if names is not None and may_ask else None
        if public is None or names is None or "__all__" in names.module.bindings:
            return public
        return public | (_modules_in(os.path.dirname(path)) if os.path.basename(path) == PACKAGE else set())

    def owns(self, module: str) -> bool:
        """See `names.Neighbours`."""
        return bool(self.files(module))

    def inside(self, name: str) -> bool:
        """See `names.Neighbours`."""
        return self._is_package and _module_file(self._folder, [name]) is not None

    def files(self, module: str) -> tuple[str, ...]:
        """The files that an own module may be: which one, where there are several, depends on how Python is started."""
        if module not in self._files:
            parts = module.lstrip(".").split(".") if module.strip(".") else []
            level = len(module) - len(module.lstrip("."))
            folders = [os.path.join(self._folder, *[os.pardir] * (level - 1))] if level else self._folders
            found = (_module_file(os.path.normpath(folder), parts) for folder in folders)
            self._files[module] = tuple(path for path in found if path is not None)
        return self._files[module]

    @cached_property
    def _folders(self) -> list[str]:
        """The file's folder and those above, up to the repository's root."""
        folders = [self._folder]
        while len(folders) < _LEVELS:
            above = os.path.dirname(folders[-1])
            if above == folders[-1] or any(os.path.exists(os.path.join(folders[-1], sign)) for sign in _ROOT_SIGNS):
                break
            folders.append(above)
        return folders


def _parent(module: str) -> str:
    """The package that a module is in, as its importer writes it; nothing for one at the top."""
    head = module.rstrip(".")
    if not head:
        return module + "."
    stem = head.rpartition(".")[0]
    return stem or module[: len(module) - len(module.lstrip("."))]


def _module_file(folder: str, parts: list[str]) -> str | None:
    base = os.path.join(folder, *parts)
    for candidate in (os.path.join(base, PACKAGE), *([f"{base}.py"] if parts else [])):
        if os.path.isfile(candidate):
            return candidate
    return None


def _modules_in(folder: str) -> set[str]:
    """The modules of a package: who imports one of them binds its name in the package."""
    stems = (name.removesuffix(".py") for name in os.listdir(folder))
    return {stem for stem in stems if stem.isidentifier() and not stem.startswith("_")}


def _read_file(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
