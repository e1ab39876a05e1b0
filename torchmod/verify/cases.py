"""The golden cases that can be run: ``golden/<transform>/rewrites_<what>/`` with what belongs to them."""

from __future__ import annotations

import difflib
import tomllib
import warnings
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
    wrong_raises: tuple[str, ...] = ()
    """The wrong rewrites that are wrong because they do not run to their end."""
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
MOST_DEVICES = 16
_OF_OTHERS = {"unsafe", "target", "written-for"}
_WANT_KEYS = {"path", "aspect", "before", "after", "when"}
_TYPES = {"watch": list, "wants": list, "legacy": str, "devices": int, "cannot-run": str, "wrong-raises": list}


def read_cases(golden: Path, names: Sequence[str] = ()) -> list[Case]:
    """All cases, or those whose transform, name or ``transform/name`` is given; VerifyError when there is none."""
    folders = [path for path in sorted(golden.glob("*/rewrites_*")) if path.is_dir()]
    cases = [_read(path) for path in folders]
    for name in names:
        if cases and not any(_is_called(case, name) for case in cases):
            raise VerifyError(f"no case or transform in {golden} is called `{name}`{_nearest(name, cases)}")
    chosen = [case for case in cases if not names or any(_is_called(case, name) for name in names)]
    if not chosen:
        raise VerifyError(f"there are no golden cases in {golden} (--golden says where they are)")
    return chosen


def _is_called(case: Case, name: str) -> bool:
    transform, _, rest = name.strip("/").partition("/")
    if rest:
        return case.transform == transform.replace("_", "-") and case.name == rest
    return transform == case.name or case.transform == transform.replace("_", "-")


def _nearest(name: str, cases: Sequence[Case]) -> str:
    """The name that was perhaps meant, as the end of a message."""
    known = list(dict.fromkeys(called for case in cases for called in (case.transform, case.path, case.name)))
    near = difflib.get_close_matches(name.strip("/"), known, n=1)
    return f"; did you mean `{near[0]}`?" if near else ""


def _read(folder: Path) -> Case:
    transform, name = folder.parent.name.replace("_", "-"), folder.name
    try:
        return Case(
            transform,
            name,
            before=_text(folder / "before.py"),
            after=_text(folder / "after.py"),
            wrong={path.name: _text(path) for path in sorted(folder.glob("wrong_*.py"))},
            setup=_setup(folder / "setup.py"),
            **_options(folder / "case.toml"),
        )
    except VerifyError as error:
        return Case(transform, name, problem=str(error))


def _text(path: Path) -> str:
    if not path.exists():
        raise VerifyError(f"it has no {path.name}")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise VerifyError(f"{path.name} is no UTF-8 (byte {error.start})") from None
    except OSError as error:
        raise VerifyError(f"{path.name} cannot be read: {error.strerror}") from None


def _setup(path: Path) -> str:
    """The setup, which has to be Python: without it no side can be run."""
    if not path.exists():
        return ""
    text = _text(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its escapes and comparisons
            compile(text, path.name, "exec")
    except SyntaxError as error:
        line = f", line {error.lineno}" if error.lineno else ""
        raise VerifyError(f"{path.name}{line}: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:  # NUL bytes, too deep
        raise VerifyError(f"{path.name} is no Python: {error}") from None
    return text


def _options(path: Path) -> dict[str, Any]:
    """What case.toml says, as fields of a Case."""
    if not path.exists():
        return {}
    try:
        given = tomllib.loads(_text(path))
    except tomllib.TOMLDecodeError as error:
        raise VerifyError(f"case.toml: {error}") from None
    for key, value in given.items():
        if key not in _OF_OTHERS and key not in _TYPES:
            raise VerifyError(f"case.toml: there is no key `{key}`")
        if key in _TYPES and type(value) is not _TYPES[key]:
            raise VerifyError(f"case.toml: `{key}` is no {_TYPES[key].__name__}")
    _check(given)
    options = {key.replace("-", "_"): given[key] for key in ("legacy", "devices", "cannot-run") if key in given}
    options["watch"] = tuple(given.get("watch", ()))
    options["wrong_raises"] = tuple(map(str, given.get("wrong-raises", ())))
    for name in options["wrong_raises"]:
        if not (path.parent / name).is_file():
            raise VerifyError(f"case.toml: `wrong-raises` names {name}, which is not there")
    options["wants"] = _wants(given.get("wants", ()))
    return options


def _check(given: Mapping[str, Any]) -> None:
    """Raise VerifyError for a value that has the right type, and yet makes no sense."""
    from torchmod.verify.legacy import PROFILES

    if not 1 <= given.get("devices", 1) <= MOST_DEVICES:
        raise VerifyError(f"case.toml: `devices` is {given['devices']}, not 1 to {MOST_DEVICES}")
    if not given.get("cannot-run", "x").strip():
        raise VerifyError("case.toml: `cannot-run` gives no reason")
    if given.get("legacy", next(iter(PROFILES))) not in PROFILES:
        raise VerifyError(f"case.toml: `legacy` is {given['legacy']!r}, not one of {', '.join(PROFILES)}")
    for key in ("watch", "wrong-raises"):
        if any(not isinstance(one, str) or not one for one in given.get(key, ())):
            raise VerifyError(f"case.toml: `{key}` holds something that is no name")


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
