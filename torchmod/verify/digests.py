"""Much data as little text, that is the same only where the data is."""

from __future__ import annotations

import hashlib
from typing import Any

import torch

from torchmod.verify.tensors import content
from torchmod.verify.trace import Snapshot


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


class Digest:
    """Many snapshots as one: it tells whether they are all the same, but not which one is not."""

    def __init__(self) -> None:
        self.hash, self.count = hashlib.sha256(), 0
        self.unseen = ""

    def add(self, one: Any) -> None:
        self.count += 1
        self._feed(one)

    def _feed(self, one: Any) -> None:
        if isinstance(one, torch.Tensor):
            self.hash.update(f"{one.dtype} {list(one.shape)} ".encode() + content(one))
        elif isinstance(one, dict):
            if isinstance(one.get("kind"), str):  # a snapshot, and not the items of one
                self.unseen = self.unseen or (f"a {one['type']}" if one["kind"] == "unseen" else one.get("unseen", ""))
            self.hash.update(f"{len(one)} ".encode())
            for name, held in one.items():
                self.hash.update(f"{name!r} ".encode())
                self._feed(held)
        else:
            self.hash.update(f"{one!r} ".encode())

    def snapshot(self) -> Snapshot:
        return {"kind": "digest", "length": self.count, "value": self.hash.hexdigest()[:16], "unseen": self.unseen}
