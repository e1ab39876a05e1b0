"""Whose code calls a function of torch: what torch itself does means what it means today."""

from __future__ import annotations

from types import FrameType


def is_torch(frame: FrameType | None) -> bool:
    """Whether a call that a function mode sees, given the frame of the mode, comes from torch's own code."""
    through_python = False
    while frame is not None:
        module: str = frame.f_globals.get("__name__", "")
        if module == "torch.overrides":
            through_python = True  # the next frame is that of the function called, which is written in Python
        elif through_python:
            through_python = False
        elif not module.startswith("torchmod.verify."):
            return module.partition(".")[0] == "torch"
        frame = frame.f_back
    return False
