"""The golden cases that can be run: ``golden/<transform>/rewrites_<what>/`` with what belongs to them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torchmod.verify.compare import Want


class VerifyError(Exception):
    """A mistake in what the user gave us: shown without a traceback, exit status 2."""


@dataclass(frozen=True, slots=True)
class Case:
    """A program before and after a rewrite, wrong rewrites of it, and what was intended."""

    transform: str
    name: str
    before: str = ""
    after: str = ""
    wrong: Mapping[str, str] = field(default_factory=dict)
    """Wrong rewrites, by file name."""
    setup: str = ""
    watch: tuple[str, ...] = ()
    wants: Mapping[str, tuple[Want, ...]] = field(default_factory=dict)
    """Intended differences, by the mode they belong to."""
    legacy: str | None = None
    devices: int = 2
    cannot_run: str = ""
    """Why it cannot be run at all, said by its author."""
    problem: str = ""
    """What is wrong with its files."""

    @property
    def path(self) -> str:
        return f"{self.transform}/{self.name}"


DEVICE, GRADIENTS, NO_ACCELERATOR = "device", "gradients", "no-accelerator"
MODES = (DEVICE, GRADIENTS, NO_ACCELERATOR)
"""The ways a pair is run: as it is; with inputs that require grad; the program after, where there is no GPU."""
_OF_OTHERS = {"unsafe", "target", "written-for"}
_WANT_KEYS = {"path", "aspect", "before", "after", "when"}
_TYPES = {"watch": list, "wants": list, "legacy": str, "devices": int, "cannot-run": str}


def read_cases(golden: Path, names: Sequence[str] = ()) -> list[Case]:
    """All cases, or those whose transform, name or ``transform/name`` is given; VerifyError when there is none."""
    folders = [path for path in sorted(golden.glob("*/rewrites_*")) if path.is_dir()]
    cases = [_read(path) for path in folders]
    for name in names:
        if not any(_is_called(case, name) for case in cases):
            raise VerifyError(f"no case or transform in {golden} is called `{name}`")
    chosen = [case for case in cases if not names or any(_is_called(case, name) for name in names)]
    if not chosen:
        raise VerifyError(f"there are no golden cases in {golden} (--golden says where they are)")
    return chosen


def _is_called(case: Case, name: str) -> bool:
    transform, _, rest = name.partition("/")
    if rest:
        return case.transform == transform.replace("_", "-") and case.name == rest
    return name == case.name or case.transform == name.replace("_", "-")


def _read(folder: Path) -> Case:
    transform, name = folder.parent.name.replace("_", "-"), folder.name
    try:
        return Case(
            transform,
            name,
            before=_text(folder / "before.py"),
            after=_text(folder / "after.py"),
            wrong={path.name: _text(path) for path in sorted(folder.glob("wrong_*.py"))},
            setup=_text(folder / "setup.py") if (folder / "setup.py").exists() else "",
            **_options(folder / "case.toml"),
        )
    except (OSError, UnicodeDecodeError, VerifyError) as error:
        return Case(transform, name, problem=str(error))


def _text(path: Path) -> str:
    if not path.exists():
        raise VerifyError(f"it has no {path.name}")
    return path.read_text(encoding="utf-8")


def _options(path: Path) -> dict[str, Any]:
    """What case.toml says, as fields of a Case."""
    if not path.exists():
        return {}
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise VerifyError(f"case.toml: {error}") from None
    for key, value in given.items():
        if key not in _OF_OTHERS and key not in _TYPES:
            raise VerifyError(f"case.toml: there is no key `{key}`")
        if key in _TYPES and type(value) is not _TYPES[key]:
            raise VerifyError(f"case.toml: `{key}` is no {_TYPES[key].__name__}")
    options = {key.replace("-", "_"): given[key] for key in ("legacy", "devices", "cannot-run") if key in given}
    options["watch"] = tuple(map(str, given.get("watch", ())))
    options["wants"] = _wants(given.get("wants", ()))
    return options


def _wants(given: Sequence[Any]) -> dict[str, tuple[Want, ...]]:
    """Intended differences by mode: ``when``, or the first mode if not said."""
    found: dict[str, tuple[Want, ...]] = {}
    for one in given:
        if not isinstance(one, dict) or not {"path", "aspect"} <= set(one) <= _WANT_KEYS:
            raise VerifyError("case.toml: an entry of `wants` has path, aspect, and maybe before, after, when")
        mode = one.get("when", DEVICE)
        if mode not in MODES:
            raise VerifyError(f"case.toml: `when` is one of {', '.join(MODES)}")
        before, after = (str(one.get(side, "*")) for side in ("before", "after"))
        want = Want(str(one["path"]), str(one["aspect"]), before, after)
        found[mode] = (*found.get(mode, ()), want)
    return found
