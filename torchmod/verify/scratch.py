"""The folder of one run, which is gone afterwards whatever the program did to it."""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator


def make() -> str:
    """A new folder, by its real path."""
    return os.path.realpath(tempfile.mkdtemp(prefix="torchmod-verify-"))


def remove(folder: str) -> None:
    """Remove a folder with all in it; never raises. Folders may be nested deeper than paths and recursion go."""
    if os.open not in os.supports_dir_fd or os.rename not in os.supports_dir_fd:
        with contextlib.suppress(RecursionError):
            shutil.rmtree(folder, ignore_errors=True)
        return
    with contextlib.suppress(OSError):
        os.chmod(folder, 0o700)
        with _opened(folder) as top:
            token = secrets.token_hex(8)
            names = (f"{token}.{number}" for number in itertools.count())  # that nothing in it has
            while _flatten(top, names):
                pass
        os.rmdir(folder)


def _flatten(top: int, names: Iterator[str]) -> bool:
    """Remove what is in a folder; folders within its folders move up into it. Whether another round is needed."""
    again = False
    for name in os.listdir(top):
        if not _is_folder(name, top):
            _unlink(name, top)
            continue
        with contextlib.suppress(OSError):
            os.chmod(name, 0o700, dir_fd=top)
            with _opened(name, top) as below:
                for inner in os.listdir(below):
                    if _is_folder(inner, below):
                        os.chmod(inner, 0o700, dir_fd=below)
                        os.rename(inner, next(names), src_dir_fd=below, dst_dir_fd=top)
                        again = True
                    else:
                        _unlink(inner, below)
            os.rmdir(name, dir_fd=top)
    return again


@contextlib.contextmanager
def _opened(folder: str, above: int | None = None) -> Iterator[int]:
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
    try:
        yield number
    finally:
        os.close(number)


def _is_folder(name: str, above: int) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _unlink(name: str, above: int) -> None:
    with contextlib.suppress(OSError):
        os.unlink(name, dir_fd=above)
