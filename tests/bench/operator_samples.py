"""Torch's own operator samples, on the simulated device against the plain CPU: values, dtypes, devices and gradients.

    python tests/bench/operator_samples.py [--samples N] [--mixed] [NAME ...]

Each operator runs in a process of its own. With ``--mixed`` one operand of each sample is left on the CPU instead, and
the operators that do not mind are listed: a person has to judge those. The samples are in torch's internal tests, which
need expecttest (``pip install expecttest``). The exit status is 0, or 1 when less than ``--least`` percent agree.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import sys
import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from torchmod.verify import simulated
from torchmod.verify.confine import Limits
from torchmod.verify.simulated.placement import rule_of, tensors_in
from torchmod.verify.trace import Status
from torchmod.verify.zygote import run_functions

UNINITIALISED = ("empty", "new_empty")
CUDA_ONLY = "jiterator"
OPERATORS: dict[str, Any] = {}


@dataclass(frozen=True)
class Outcome:
    """What an operator gave for one sample: its results, and the gradients or why there are none."""

    results: list[Tensor]
    gradients: list[Tensor | None] | str


def collect() -> None:
    """Fill OPERATORS with what takes float32, by name."""
    from torch.testing._internal.common_methods_invocations import op_db

    for operator in op_db:
        if torch.float32 in operator.dtypes and not operator.name.startswith(CUDA_ONLY):
            variant = f".{operator.variant_test_name}" if operator.variant_test_name else ""
            OPERATORS[f"{operator.name}{variant}"] = operator


def samples_of(name: str, limit: int) -> list[Any]:
    operator = OPERATORS[name]
    torch.manual_seed(0)
    found = operator.sample_inputs("cpu", torch.float32, requires_grad=operator.supports_autograd)
    return list(itertools.islice(found, limit))


def moved(value: Any, device: str) -> Any:
    """The arguments of a sample on another device, as leaves again."""
    if isinstance(value, Tensor):
        return value.detach().to(device).requires_grad_(value.requires_grad)
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        return type(value)(moved(item, device) for item in value)
    if isinstance(value, dict):
        return {key: moved(item, device) for key, item in value.items()}
    if isinstance(value, torch.device) or value == "cpu":
        return torch.device(device)
    return value


def arguments_of(sample: Any, device: str) -> tuple[list[Any], dict[str, Any]]:
    return [moved(item, device) for item in (sample.input, *sample.args)], moved(sample.kwargs, device)


def outcome(name: str, arguments: list[Any], keywords: dict[str, Any]) -> Outcome:
    torch.manual_seed(1)
    results = list(tensors_in(OPERATORS[name](*arguments, **keywords)))
    leaves = [tensor for tensor in tensors_in((arguments, keywords)) if tensor.requires_grad]
    ends = [result for result in results if result.requires_grad]
    if not leaves or not ends:
        return Outcome(results, "nothing to differentiate")
    try:
        seeds = [torch.ones_like(end) for end in ends]
        return Outcome(results, list(torch.autograd.grad(ends, leaves, seeds, allow_unused=True)))
    except (RuntimeError, NotImplementedError) as error:
        return Outcome(results, type(error).__name__)


class Draws(TorchDispatchMode):
    """Notes whether random numbers are drawn: they are others on a device, as on a GPU."""

    seen = False

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen |= rule_of(func).draws
        return func(*args, **(kwargs or {}))


def check(name: str, limit: int) -> None:
    """Compare an operator on the simulated device with the CPU; raises AssertionError where they differ."""
    samples = samples_of(name, limit)
    with Draws() as draws:
        expected = [outcome(name, *arguments_of(sample, "cpu")) for sample in samples]
    random = draws.seen or name.startswith(UNINITIALISED)
    simulated.install()
    for number, (sample, on_cpu) in enumerate(zip(samples, expected, strict=True)):
        arguments = arguments_of(sample, "cuda")
        found = outcome(name, *arguments)
        compare(f"sample {number}, result", on_cpu.results, found.results, random)
        if isinstance(on_cpu.gradients, str) or isinstance(found.gradients, str):
            assert on_cpu.gradients == found.gradients, f"gradients: {on_cpu.gradients} and {found.gradients}"
        else:
            compare(f"sample {number}, gradient", on_cpu.gradients, found.gradients, random)


def compare(what: str, expected: list[Any], found: list[Any], random: bool) -> None:
    assert len(expected) == len(found), f"{what}: {len(expected)} and {len(found)}"
    for number, (left, right) in enumerate(zip(expected, found, strict=True)):
        assert (left is None) == (right is None), f"{what} {number}: {left is None} and {right is None}"
        if left is None:
            continue
        assert right.is_cuda, f"{what} {number} is on the CPU"
        assert (left.shape, left.dtype) == (right.shape, right.dtype), f"{what} {number}: {left.dtype} {right.dtype}"
        assert random or same(left, right), f"{what} {number} is another"


def same(left: Tensor, right: Tensor) -> bool:
    """Whether the values agree; a kernel may take another path where the memory is laid out otherwise."""
    try:
        torch.testing.assert_close(plain(left), plain(right), equal_nan=True)
    except AssertionError:
        return False
    return True


def plain(tensor: Tensor) -> Tensor:
    tensor = tensor.detach().cpu()
    return tensor if tensor.layout is torch.strided else tensor.to_dense()


def check_mixed(name: str, limit: int) -> str:
    """Leave one operand on the CPU; says whether the operator minds, or that it has one operand only."""
    samples = samples_of(name, limit)
    simulated.install()
    answer = "one operand"
    for sample in samples:
        arguments, keywords = arguments_of(sample, "cuda")
        operands = [operand for operand in tensors_in(arguments) if operand.dim()]
        if len(operands) < 2:
            continue
        try:
            OPERATORS[name](*(left_behind(value, operands[-1]) for value in arguments), **keywords)
        except (RuntimeError, TypeError, ValueError):
            return "minds"
        answer = "takes operands on two devices"
    return answer


def left_behind(value: Any, operand: Tensor) -> Any:
    """An argument, with one of its tensors on the CPU."""
    if value is operand:
        return operand.detach().cpu()
    if type(value) in (list, tuple):
        return type(value)(left_behind(item, operand) for item in value)
    return value


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="operators (default: all)")
    parser.add_argument("--samples", type=int, default=5, metavar="N", help="samples of each (default: %(default)s)")
    parser.add_argument(
        "--least", type=float, default=98.2, metavar="PERCENT", help="must agree (default: %(default)s)"
    )
    parser.add_argument("--mixed", action="store_true", help="leave one operand on the CPU")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    importlib.import_module("torch._dynamo")  # once, instead of in the children
    collect()
    names = options.names or sorted(OPERATORS)
    function = check_mixed if options.mixed else check
    ended = run_functions(
        [partial(function, name, options.samples) for name in names], Limits(seconds=120, memory=16 << 30)
    )
    answers = {
        name: one.value if one.status is Status.RAN else one.reason for name, one in zip(names, ended, strict=True)
    }
    return report_mixed(answers) if options.mixed else report(answers, options.least)


def report(answers: dict[str, str | None], least: float) -> int:
    wrong = {name: answer for name, answer in answers.items() if answer}
    for name, answer in wrong.items():
        print(f"{name}: {answer}")
    agree = len(answers) - len(wrong)
    print(f"{agree} of {len(answers)} operators agree (simulated device, torch {torch.__version__})")
    return 0 if agree >= len(answers) * least / 100 else 1


def report_mixed(answers: dict[str, str | None]) -> int:
    concerned = {name: answer for name, answer in answers.items() if answer != "one operand"}
    minds = [name for name, answer in concerned.items() if answer == "minds"]
    for name in concerned.keys() - set(minds):
        print(f"{name}: {concerned[name]}")
    print(f"{len(minds)} of {len(concerned)} operators mind (simulated device, torch {torch.__version__})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
