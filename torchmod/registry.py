"""Which transforms there are: the decorator that declares one, finding them by walking the package, choosing by name.

The core never names a transform. Built-in ones are the modules of `torchmod.transforms`; a third party's come from an
entry point of the group ``torchmod.transforms``, and only when the configuration names it.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from torchmod.knowledge.signature import Signature
from torchmod.model import Finding, TorchmodError
from torchmod.prefilter import Row
from torchmod.words import version

PACKAGE = "torchmod.transforms"
ENTRY_POINTS = "torchmod.transforms"
_ANCHORS = ("torch",)

Function = Callable[..., Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Transform:
    """One declared transform. Exactly one of ``calls``, ``on_module``, ``documents`` and ``on_project`` is set."""

    name: str
    function: Function
    doc: str
    since: str
    tags: tuple[str, ...]
    link: str
    anchors: tuple[str, ...]
    names: tuple[str, ...]
    calls: Mapping[str, Signature]
    keywords: tuple[str, ...]
    unpacked: bool
    on_module: bool
    documents: tuple[str, ...]
    on_project: bool

    @property
    def summary(self) -> str:
        """The docstring's first line, without its full stop."""
        return self.doc.split("\n", 1)[0].rstrip(".")

    @property
    def words(self) -> tuple[str, ...]:
        """What a file must hold one of, for the transform to have anything to say about it."""
        last = (name.rpartition(".")[2] for name in self.calls)
        return tuple(sorted({*last, *self.names, *self.keywords}))

    @property
    def row(self) -> Row:
        """What the index of names keeps of it."""
        return Row(self.tags, self.anchors, self.words, self.documents, self.on_project)

    @property
    def needs_version(self) -> tuple[int, ...]:
        """The oldest torch that its rewrites run on."""
        return version(self.since)


def transform(  # noqa: PLR0913
    *,
    calls: Mapping[str, Signature] | None = None,
    keywords: Sequence[str] = (),
    unpacked: bool = False,
    module: bool = False,
    documents: Sequence[str] = (),
    project: bool = False,
    names: Sequence[str] = (),
    anchors: Sequence[str] = _ANCHORS,
    since: str,
    tags: Sequence[str] = (),
    link: str = "",
) -> Callable[[Function], Transform]:
    """Declare a transform; what is handed to the function depends on which of the first arguments is given.

    calls: each call of one of these names, as a `Call`; those with ``*args`` or ``**kwargs`` only with ``unpacked``.
    keywords: also each call of anything else that has one of these arguments (its ``name`` is empty).
    module: each Python file that holds one of ``names``, as a `Module`.
    documents: each file whose name matches one of these patterns, as a `Document`.
    project: all Python files of the run at once, as `ProjectFiles`.
    since: the oldest torch on which the new code runs. link: where the change is documented.
    """

    def declare(function: Function) -> Transform:
        home = importlib.import_module(function.__module__)
        return Transform(
            name=function.__module__.rpartition(".")[2].replace("_", "-"),
            function=function,
            doc=(home.__doc__ or "").strip(),
            since=since,
            tags=tuple(tags),
            link=link,
            anchors=tuple(anchors),
            names=tuple(names),
            calls=calls or {},
            keywords=tuple(keywords),
            unpacked=unpacked,
            on_module=module,
            documents=tuple(documents),
            on_project=project,
        )

    return declare


def discover(plugins: Iterable[str] = ()) -> dict[str, Transform]:
    """All transforms by name, sorted. Raises TorchmodError, naming the module, when one cannot be imported."""
    found: dict[str, Transform] = {}
    package = importlib.import_module(PACKAGE)
    for one in _declared(package):
        if not one.function.__module__.startswith(f"{PACKAGE}."):
            raise TorchmodError(f"{one.function.__module__} is not part of {PACKAGE}: something shadows it")
        found[one.name] = one
    for plugin in plugins:
        for one in _declared(_load_plugin(plugin)):
            if one.name in found:
                raise TorchmodError(f"plugin `{plugin}`: there already is a transform called {one.name}")
            found[one.name] = one
    return dict(sorted(found.items()))


def _load_plugin(name: str) -> ModuleType:
    from importlib.metadata import entry_points

    points = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    if name not in points:
        known = f"installed: {', '.join(sorted(points))}" if points else "none is installed"
        raise TorchmodError(f"there is no plugin `{name}` (entry point group {ENTRY_POINTS}; {known})")
    try:
        module: Any = points[name].load()
    except Exception as error:  # whatever somebody's import may raise
        raise TorchmodError(f"plugin `{name}` cannot be imported: {type(error).__name__}: {error}") from error
    if not isinstance(module, ModuleType):
        raise TorchmodError(f"plugin `{name}` must be a module or a package, not {type(module).__name__}")
    return module


def _declared(home: ModuleType) -> Iterator[Transform]:
    """The transforms of a module, or of every module of a package."""
    yield from (value for value in vars(home).values() if isinstance(value, Transform))
    for info in pkgutil.iter_modules(getattr(home, "__path__", ())):
        name = f"{home.__name__}.{info.name}"
        try:
            module = importlib.import_module(name)
        except Exception as error:
            raise TorchmodError(
                f"transform module {name} cannot be imported: {type(error).__name__}: {error}"
            ) from error
        yield from _declared(module)
