"""The tools, each in a virtual environment of its own, which is kept for the next time."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from running import CouldNotRun, must, say

CHECKOUT = Path(__file__).resolve().parents[2]
PEERS = {"ruff": "ruff", "ast-grep": "ast-grep-cli", "torchfix": "torchfix"}
"""The name of each peer's command, and what it is called on PyPI."""


def install_peers(venvs: Path) -> dict[str, str]:
    """The command of each peer, installed where it is not yet."""
    return {name: str(installed(venvs / name, what, what) / "bin" / name) for name, what in PEERS.items()}


def install_torchmod(venvs: Path) -> str:
    """The command of torchmod, built from a copy of this checkout, so that no build is left behind in it."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch, "torchmod")
        copy.mkdir()
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(CHECKOUT / name, copy)
        for name in ("torchmod", "transforms"):
            shutil.copytree(CHECKOUT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        return str(installed(venvs / "torchmod", str(copy), fingerprint(copy)) / "bin" / "torchmod")


def fingerprint(folder: Path) -> str:
    """What tells two versions of a checkout apart."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            found.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes() + b"\0")
    return found.hexdigest()


def installed(folder: Path, requirement: str, version: str) -> Path:
    """A virtual environment with a requirement in it; made anew when the version or the interpreter is another."""
    stamp = folder / "bench-stamp"
    wanted = f"{version}\n{sys.version}\n{sys.base_prefix}\n"
    if not stamp.exists() or stamp.read_text() != wanted:
        say(f"installing {folder.name}")
        must([sys.executable, "-m", "venv", "--clear", str(folder)])
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        must([*pip, requirement])
        stamp.write_text(wanted)
    return folder


def command_of(text: str) -> tuple[str, ...]:
    """A command that the user gives, such that it can be started from anywhere."""
    first, *arguments = shlex.split(text) or [""]
    path = shutil.which(first)
    if path is None:
        raise CouldNotRun(f"there is no command `{first}`")
    return (os.path.abspath(path), *arguments)  # not resolved: a link in a virtual environment stands for it


def interpreter_of(command: Sequence[str]) -> str:
    """The Python that runs a command: itself, or the one in the first line of a console script."""
    if Path(command[0]).name.startswith("python"):
        return command[0]
    with open(command[0], "rb") as file:
        first = file.readline().decode(errors="replace")
    found = re.match(r"#!\s*(\S*python\S*)\s*$", first)
    if found is None:
        raise CouldNotRun(f"cannot tell which Python runs {command[0]}: its first line does not name one")
    return found[1]
