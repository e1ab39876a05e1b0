"""What counts as a difference, and what is made of it."""

import io
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed: nothing is run and compared")

import torch

from torchmod.verify.compare import ELSEWHERE, Kind, Want, compare, judge
from torchmod.verify.snapshot import MISSING, Snapshots
from torchmod.verify.trace import Output, Raised, Status, Trace


def trace(**values: Any) -> Trace:
    snapshots = Snapshots("/scratch")
    return Trace(values={name: snapshots.of(value) for name, value in values.items()})


def differences(before: Any, after: Any) -> list[tuple[str, str]]:
    return [(one.path, one.aspect) for one in compare(trace(x=before), trace(x=after))]


def leaf(*numbers: float, grad: float | None = None) -> Any:
    tensor = torch.tensor(numbers, requires_grad=True)
    tensor.grad = None if grad is None else torch.full_like(tensor, grad)
    return tensor


def loss(**flags: Any) -> Any:
    return torch.nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0]), **flags)


def net(**changes: Any) -> Any:
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Dropout(0.5))
    for name, value in changes.items():
        setattr(module[1], name, value)
    return module


def optimizer(rate: float) -> Any:
    return torch.optim.SGD([leaf(1.0)], lr=rate)


class Meter:
    def __init__(self, average: float) -> None:
        self.average = average


Meter.__module__ = "__main__"  # as in a program that was run
SAME = [
    None,
    True,
    3,
    1 << 70,
    2.5,
    float("nan"),
    1 + 2j,
    "text",
    b"\xff\x00",
    "half \udcff",
    (1, [2.0, {"a": 3}]),
    {1, 2},
    torch.float32,
    torch.Size([2]),
    torch.tensor([1.0, float("nan")]),
    torch.tensor([1, 2]),
    torch.empty(0),
    torch.eye(2).to_sparse(),
    torch.empty(2, device="meta"),
    leaf(1.0, grad=2.0),
    leaf(1.0) * 2,
    loss(),
    net(),
    Meter(1.0),
]


@pytest.mark.parametrize("value", SAME, ids=lambda value: type(value).__name__)
def test_a_trace_equals_itself_after_the_way_between_processes(value: Any) -> None:
    buffer = io.BytesIO()
    torch.save(trace(x=value).plain(), buffer)
    buffer.seek(0)
    arrived = Trace.from_plain(torch.load(buffer, weights_only=True))
    assert compare(trace(x=value), arrived) == []


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (1, 2, [("x", "value")]),
        (1, True, [("x", "type")]),
        (1.0, 1.0 + 1e-4, [("x", "value")]),
        (1.0, 1.0 + 1e-9, []),
        (1e-6, 2e-6, [("x", "value")]),
        ("a", "b", [("x", "value")]),
        (None, 0, [("x", "type")]),
        (torch.ones(2), torch.ones(3), [("x", "shape")]),
        (torch.ones(2), torch.tensor([1.0, 1.0 + 1e-4]), [("x", "value")]),
        (torch.ones(2), torch.tensor([1.0, 1.0 + 1e-7]), []),
        (torch.ones(2), torch.tensor([1.0, float("nan")]), [("x", "value")]),
        (torch.ones(2), torch.ones(2).double(), [("x", "dtype")]),
        (torch.ones(2), torch.ones(2).double() + 1e-3, [("x", "dtype"), ("x", "value")]),
        (torch.tensor([5]), torch.tensor([6]), [("x", "value")]),
        (torch.tensor(2.0), torch.tensor([2.0]), [("x", "shape")]),
        (torch.tensor(2.0), torch.tensor([3.0]), [("x", "shape"), ("x", "value")]),
        (torch.tensor(2.0), 2.0, [("x", "type")]),
        (torch.tensor(2.0), 3, [("x", "type"), ("x", "value")]),
        (torch.ones(2), 1.0, [("x", "type")]),
        (torch.eye(2), torch.eye(2).to_sparse(), [("x", "layout")]),
        (torch.ones(1), leaf(1.0), [("x", "requires_grad")]),
        (leaf(1.0), leaf(1.0) * 1, [("x", "leaf"), ("x", "graph")]),
        (torch.ones(1, requires_grad=True), torch.nn.Parameter(torch.ones(1)), [("x", "parameter")]),
        (leaf(1.0, grad=1.0), leaf(1.0), [("x.grad", "presence")]),
        (leaf(1.0, grad=1.0), leaf(1.0, grad=2.0), [("x.grad", "value")]),
        ([1, 2], [1], [("x", "length"), ("x.1", "presence")]),
        ([1], (1,), [("x", "type")]),
        ({"a": [1]}, {"a": [2], "b": 3}, [("x", "length"), ("x.a.0", "value"), ("x.b", "presence")]),
        (loss(), loss(reduction="sum"), [("x.reduction", "value")]),
        (loss(ignore_index=1), loss(), [("x.ignore_index", "value")]),
        (loss(), torch.nn.CrossEntropyLoss(), [("x", "keys"), ("x.weight", "presence")]),
        (net(), net().eval(), [("x", "training"), ("x.0", "training"), ("x.1", "training")]),
        (net(), net(p=0.1), [("x.1.p", "value")]),
        (optimizer(0.1), optimizer(0.2), [("x.param_groups.0.lr", "value")]),
        (Meter(1.0), Meter(2.0), [("x.average", "value")]),
    ],
)
def test_what_differs(before: Any, after: Any, found: list[tuple[str, str]]) -> None:
    assert [one for one in differences(before, after) if one[0] != "<graph>"] == found


def test_a_value_that_holds_itself_is_looked_at_once() -> None:
    before: list[Any] = [1]
    before.append(before)
    after: list[Any] = [2]
    after.append(after)
    assert differences(before, after) == [("x.0", "value")]


def test_a_value_whose_own_code_fails_is_no_failure_of_ours() -> None:
    class Shy(dict):  # type: ignore[type-arg]
        def items(self) -> Any:
            raise RuntimeError

    assert Snapshots("/scratch").safely(Shy())["type"] == "Shy (unreadable: RuntimeError)"


def test_folders_and_addresses_do_not_count() -> None:
    texts = [
        Snapshots(folder).of(f"{folder}/a at {address}")
        for folder, address in (("/s1", "0x7f00aa"), ("/s2", "0x7f00bb"))
    ]
    assert texts[0] == texts[1]


RAISED = Raised("ValueError", "no", 3)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"exception": RAISED}, ("<run>", "exception", "none", "ValueError: no")),
        ({"output": Output("a\nc\n", 4, "2")}, ("<output>", "text", "b", "c")),
        ({"output": Output("a\n", 2, "2")}, ("<output>", "text", "b", "(no line)")),
        ({"output": Output("a\nb\n", 9, "2")}, ("<output>", "length", "4", "9")),
        ({"files": {"a.pt": MISSING}}, ("<files>.a.pt", "presence", "absent", "present")),
        ({"gradients": {"x": MISSING}}, ("<gradients>.x", "presence", "absent", "present")),
        ({"held_nodes": 4}, ("<graph>", "held", "0", "4")),
        ({"random": {"torch": "ab"}}, ("<random>.torch", "state", "absent", "ab")),
        ({"opened": {"main": 1}}, ("<h5py>.main", "opens", "absent", "1")),
        ({"warnings": ["UserWarning: old", "UserWarning: new"]}, ("<warnings>", "new", "none", "UserWarning: new")),
    ],
)
def test_observations_of_the_whole_run(change: dict[str, Any], found: tuple[str, str, str, str]) -> None:
    before = Trace(output=Output("a\nb\n", 4, "1"), warnings=["UserWarning: old", "UserWarning: gone"])
    (one,) = compare(before, replace(before, **change))
    assert (one.path, one.aspect, one.before, one.after) == found


def test_warnings_of_today_are_not_new_where_the_program_before_ran_on_an_emulated_torch() -> None:
    assert compare(Trace(emulated=True), Trace(warnings=["UserWarning: new"])) == []


def test_equal_traces_are_equivalent() -> None:
    assert judge(trace(x=1), trace(x=1)).kind is Kind.EQUIVALENT


def test_a_difference_is_told_with_path_and_values() -> None:
    verdict = judge(trace(x=[1, 2]), trace(x=[1, 3]))
    assert (verdict.kind, verdict.reason) == (Kind.DIFFERENT, "x.1: value was 2, is 3")


def test_an_intended_difference_is_equivalent() -> None:
    assert judge(trace(x=1), trace(x=2), [Want("x", "value", "1", "2")]).kind is Kind.EQUIVALENT


def test_beside_an_intended_difference_another_one_counts() -> None:
    verdict = judge(trace(x=1, y=1), trace(x=2, y=2), [Want("x", "value")])
    assert [one.path for one in verdict.differences] == ["y"]


def test_an_intended_difference_that_does_not_occur_is_stale() -> None:
    verdict = judge(trace(x=1), trace(x=1), [Want("x", "value", "1", "2")])
    assert (verdict.kind, verdict.reason) == (
        Kind.STALE,
        "an intended difference does not occur: x: value from 1 to 2",
    )


def test_one_that_need_not_occur_is_not() -> None:
    assert judge(trace(x=1), trace(x=1), [Want("x", "value", required=False)]).kind is Kind.EQUIVALENT


@pytest.mark.parametrize(
    ("pattern", "covered"),
    [("x", True), ("*", True), ("?", True), ("y", False), ("", False), ("[x]", False), ("X", False)],
)
def test_patterns_know_two_signs_only(pattern: str, covered: bool) -> None:
    (found,) = compare(trace(x=1), trace(x=2))
    assert Want(pattern, "value").covers(found) is covered


def test_a_want_for_another_value_does_not_cover() -> None:
    assert judge(trace(x=1), trace(x=3), [Want("x", "value", "1", "2")]).kind is Kind.DIFFERENT


@pytest.mark.parametrize("after", [Trace(exception=RAISED), Trace()])
def test_a_program_before_that_raises_proves_nothing(after: Trace) -> None:
    verdict = judge(Trace(exception=RAISED), after)
    assert (verdict.kind, verdict.reason) == (Kind.INCONCLUSIVE, "it raises ValueError: no (line 3)")


def test_unless_it_is_intended_that_the_program_after_does_not() -> None:
    want = Want("<run>", "exception", "ValueError*", "none")
    assert judge(Trace(exception=RAISED), Trace(), [want]).kind is Kind.EQUIVALENT
    assert judge(Trace(exception=RAISED), Trace(exception=RAISED), [want]).kind is Kind.STALE


@pytest.mark.parametrize("status", [Status.TIMEOUT, Status.DIED, Status.BAD_TRACE])
def test_a_run_without_a_trace(status: Status) -> None:
    nothing = Trace(status, "stopped")
    assert judge(nothing, nothing).kind is Kind.INCONCLUSIVE
    assert judge(Trace(), nothing).kind is Kind.DIFFERENT


def test_on_another_device_only_what_was_computed_counts() -> None:
    before, after = trace(x=torch.ones(2)), trace(x=torch.ones(2))
    before.values["x"]["device"] = "cuda:0"
    before.held_nodes, before.random = 3, {"torch": "ab"}
    assert judge(before, after).kind is Kind.DIFFERENT
    assert judge(before, after, ignored=ELSEWHERE).kind is Kind.EQUIVALENT


@pytest.mark.parametrize("change", [{"status": "odd"}, {"values": []}, {"exception": 3}, {"output": {}, "new": 1}])
def test_what_is_no_trace_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="no"):
        Trace.from_plain({**Trace().plain(), **change})
