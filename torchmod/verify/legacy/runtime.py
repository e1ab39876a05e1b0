"""A context in which torch means what it meant then."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from torchmod.verify.legacy import numbers, variables
from torchmod.verify.legacy.arithmetic import UNTIL_1_1, UNTIL_1_4
from torchmod.verify.legacy.caller import is_torch
from torchmod.verify.legacy.numbers import UNTIL_0_3
from torchmod.verify.legacy.record import fired

PROFILES: dict[str, dict[str, Callable[..., Any]]] = {
    "0.3": {**UNTIL_1_1, **UNTIL_0_3},
    "1.1": UNTIL_1_1,
    "1.4": UNTIL_1_4,
}
"""The rules by profile; each is named after the last release that meant it so."""
ACCESSORS = {"__get__", "__set__"}
GRADIENT = torch._C.TensorBase.grad.__get__  # type: ignore[union-attr]


class OldMeaning(TorchFunctionMode):
    """Applies the rules of a profile to the calls that a program makes, not to those that torch makes itself."""

    def __init__(self, profile: str) -> None:
        super().__init__()
        self.rules = PROFILES[profile]
        self.has_variables = profile == "0.3"

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        rule = self.rules.get(getattr(func, "__name__", ""))
        call: Callable[..., Any] = func
        if rule is not None and not is_torch(sys._getframe(1)):
            call = partial(rule, func)
        return spread(func, call, args, kwargs) if self.has_variables else call(*args, **kwargs)


def spread(func: Any, call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call a function so that what comes of Variables is a Variable, and what comes of volatile ones is volatile."""
    if func.__name__ in ACCESSORS and func != GRADIENT:
        return call(*args, **kwargs)
    operands = list(tensors_in((args, kwargs)))
    volatile = any(variables.is_volatile(operand) for operand in operands)
    with torch.no_grad() if volatile else nullcontext():
        result = call(*args, **kwargs)
    if volatile or any(variables.is_variable(operand) for operand in operands):
        variables.mark(tensors_in(result), volatile=volatile)
    return result


def tensors_in(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))


@contextmanager
def legacy_runtime(profile: str) -> Iterator[Counter[str]]:
    """Old meaning, as of the release that a profile names; gives the count of what was emulated."""
    if profile not in PROFILES:
        raise ValueError(f"no legacy profile {profile!r}: there are {', '.join(PROFILES)}")
    fired.clear()
    with ExitStack() as stack:
        if profile == "0.3":
            stack.enter_context(replaced(torch.autograd, "Variable", variables.Variable))
            stack.enter_context(replaced(Tensor, "__iter__", numbers.parts))
            volatile = property(variables.is_volatile, variables.set_volatile)
            stack.enter_context(replaced(Tensor, "volatile", volatile))
        stack.enter_context(OldMeaning(profile))
        yield fired


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """An attribute of a class or module, replaced for a while."""
    has_own, before = name in vars(owner), vars(owner).get(name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if has_own:
            setattr(owner, name, before)
        else:
            delattr(owner, name)
