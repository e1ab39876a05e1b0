"""The files that a program makes, changes and removes in its folder."""

from __future__ import annotations

import os
from collections.abc import Mapping

import torch

from torchmod.verify.digests import Digest, digest
from torchmod.verify.snapshot import Snapshots
from torchmod.verify.trace import Snapshot

State = tuple[int, int, str]
"""Size, time of the last change, and where a link leads."""
_MOST_SINGLE, _MOST_TEXT = 1000, 20_000


def files_below(folder: str) -> dict[str, State]:
    """The files and links below a folder, by their path in it."""
    found: dict[str, State] = {}
    for top, folders, names in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(top, name))]
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted([*names, *links]):
            path = os.path.join(top, name)
            inside = os.path.relpath(path, folder).replace(os.sep, "/")
            if os.path.islink(path):
                found[inside] = (0, 0, os.readlink(path))
            elif os.path.isfile(path):
                state = os.stat(path)
                found[inside] = (state.st_size, state.st_mtime_ns, "")
    return found


def changes(folder: str, old: Mapping[str, State], snapshots: Snapshots) -> dict[str, Snapshot]:
    """What is new or another now, by path; those that are gone, too. Of very many the last have one digest."""
    now = files_below(folder)
    found = {f"{path} (removed)": snapshots.of(True) for path in old if path not in now}
    rest = Digest()
    for count, path in enumerate(path for path in now if old.get(path) != now[path]):
        where = os.path.join(folder, path)
        if now[path][2]:
            found[path] = snapshots.of(f"a link to {now[path][2]}")
        elif count < _MOST_SINGLE:
            found[path] = file(where, snapshots)
        else:
            rest.add({path: _content(where, snapshots)})
    return {**found, "<the rest>": rest.snapshot()} if rest.count else found


def file(path: str, snapshots: Snapshots) -> Snapshot:
    """A checkpoint by what it holds, anything else by its content."""
    try:
        held = torch.load(path, weights_only=True, map_location="cpu")
    except Exception:  # it is no checkpoint
        return _content(path, snapshots)
    return {"kind": "file", "held": snapshots.of(held)}


def _content(path: str, snapshots: Snapshots) -> Snapshot:
    try:
        with open(path, "rb") as opened:
            data = opened.read()
    except OSError as error:
        return {"kind": "unseen", "type": "file", "why": str(error.strerror)}
    whole = snapshots.text(data.decode("latin-1"))  # every byte a character of its own
    text = snapshots.text(data[: _MOST_TEXT * 2].decode("utf-8", "backslashreplace"))[:_MOST_TEXT]
    return {"kind": "file", "length": len(whole), "digest": digest(whole.encode()), "text": text}
