"""What tells a wrong rewrite apart: something it computes, and not that it cannot run because of a slip in it."""

from __future__ import annotations

import builtins
from dataclasses import dataclass

from torchmod.verify.compare import Kind, Verdict
from torchmod.verify.trace import Status, Trace

_SLIPS = (NameError, SyntaxError, ImportError, AttributeError)
"""What an exception of these types, and of those derived from them, shows is mostly a typo."""
_SAYS_LITTLE = "new"
"""The aspect of warnings."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Whether a rewrite is told apart, by which aspect, and in one line how."""

    counts: bool
    by: str
    how: str


def evidence(verdict: Verdict, before: Trace, wrong: Trace, *, may_raise: bool) -> Evidence:
    """What a verdict on a wrong rewrite is worth; ``may_raise`` is that its author declared that it does not run."""
    if verdict.kind not in (Kind.DIFFERENT, Kind.STALE):
        return Evidence(False, "", verdict.reason or "it does the same")
    ended = wrong.status is not Status.RAN
    raises = ended or (wrong.exception is not None and wrong.exception != before.exception)
    if may_raise:
        how = verdict.reason if raises else "`wrong-raises` names it, but it does not raise"
        return Evidence(raises, "end" if ended else "exception", how)
    if ended:
        return Evidence(False, "end", f"{wrong.reason}: nothing could be compared (or list it in `wrong-raises`)")
    if raises and wrong.exception is not None and _is_slip(wrong.exception.type):
        return Evidence(False, "exception", f"it raises {wrong.exception}: a slip? (or list it in `wrong-raises`)")
    if verdict.kind is Kind.STALE:
        return Evidence(True, "intended difference", verdict.reason)
    telling = [one for one in verdict.differences if one.aspect != _SAYS_LITTLE]
    if not telling:
        return Evidence(False, _SAYS_LITTLE, f"only its warnings differ, {verdict.reason}")
    return Evidence(True, telling[0].aspect, str(telling[0]))


def _is_slip(name: str) -> bool:
    kind = getattr(builtins, name, None)
    return isinstance(kind, type) and issubclass(kind, _SLIPS)
