"""Old torch's meaning for old code, on today's torch.

Only the process that runs the code before a rewrite may have it. What was emulated is counted in `fired`, so that a
report can say on what its verdict rests.
"""

from torchmod.verify.legacy.record import fired
from torchmod.verify.legacy.runtime import PROFILES, legacy_runtime
from torchmod.verify.legacy.syntax import modernise

__all__ = ["PROFILES", "fired", "legacy_runtime", "modernise"]
