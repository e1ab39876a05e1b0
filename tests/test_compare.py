"""What counts as a difference, and what is made of it."""

import collections
import datetime
import functools
import io
import threading
import weakref
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed: nothing is run and compared")

import torch

from torchmod.verify.compare import ELSEWHERE, Kind, Want, compare, judge, survey
from torchmod.verify.snapshot import MISSING, Snapshots
from torchmod.verify.tensors import tensors_in
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


class Slotted:
    __slots__ = ("_one", "two")

    def __init__(self, one: float) -> None:
        self._one = one


class Counted(list):  # type: ignore[type-arg]
    total = 0


class Tone(int):
    pass


class Lazy:
    def __getstate__(self) -> Any:
        raise RuntimeError

    def __init__(self, rate: float) -> None:
        self.rate = rate


for own in (Meter, Slotted, Counted, Tone, Lazy):
    own.__module__ = "__main__"  # as in a program that was run


def with_attributes(value: Any, **attributes: Any) -> Any:
    for name, one in attributes.items():
        setattr(value, name, one)
    return value


def program(text: str) -> Any:
    """What a program calls ``x``."""
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(text, names)
    return names["x"]


def scheduler(steps: int) -> Any:
    return torch.optim.lr_scheduler.StepLR(optimizer(0.1), steps)


def nested(depth: int, value: Any) -> Any:
    for _ in range(depth):
        value = [value]
    return value


def conv(**options: Any) -> Any:
    torch.manual_seed(0)
    return torch.nn.Conv2d(1, 1, 3, **options)


TARGET = Meter(1.0)
TARGET.step = functools.partial(max, 1)  # type: ignore[attr-defined]
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
    collections.deque([1], maxlen=2),
    range(3),
    datetime.date(2020, 1, 2),
    slice(1, 2),
    {}.items(),
    bytearray(b"a"),
    functools.partial(int, base=2),
    weakref.ref(TARGET),
    TARGET.step,
    torch.Generator(),
    torch.optim.SGD([leaf(1.0)], lr=0.1),
    torch.utils.data.DataLoader([1, 2], 2, shuffle=True),
    list(range(30_000)),
    nested(90, 1),
    torch.nn.LSTM(1, 1),
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
        (collections.deque([1]), collections.deque([2]), [("x.0", "value")]),
        (collections.deque([1]), collections.deque([1], 3), [("x.maxlen", "type")]),
        (range(3), range(4), [("x.stop", "value"), ("x.<arguments>.1", "value")]),
        (datetime.date(2020, 1, 1), datetime.date(2020, 1, 2), [("x.<arguments>.0", "value")]),
        ({}.keys(), {1: 2}.keys(), [("x", "length"), ("x.0", "presence")]),
        (scheduler(2), scheduler(3), [("x.step_size", "value")]),
        (
            torch.utils.data.TensorDataset(torch.ones(2)),
            torch.utils.data.TensorDataset(torch.ones(2) * 2),
            [("x.tensors.0", "value")],
        ),
        (torch.utils.data.Subset([1, 2], [0]), torch.utils.data.Subset([1, 2], [1]), [("x.indices.0", "value")]),
        (
            torch.utils.data.DataLoader([1, 2], 2),
            torch.utils.data.DataLoader([1, 2], 1),
            [("x.batch_size", "value"), ("x.batch_sampler.batch_size", "value")],
        ),
        (conv(stride=1), conv(stride=2), [("x.stride.0", "value"), ("x.stride.1", "value")]),
        (net(), with_attributes(net(), _v=1), [("x._v", "presence")]),
        (with_attributes(net(), own=[conv()]), with_attributes(net(), own=[conv(bias=False)]), None),
        (with_attributes(Meter(1.0), _v=1), with_attributes(Meter(1.0), _v=2), [("x._v", "value")]),
        (Slotted(1), Slotted(2), [("x._one", "value")]),
        (Counted([1]), with_attributes(Counted([1]), total=3), [("x.total", "value")]),
        (Tone(1), Tone(2), [("x.<value>", "value")]),
        (Lazy(1.0), Lazy(2.0), [("x.rate", "value")]),
        (with_attributes(torch.optim.Adam([leaf(1.0)]), own=1), torch.optim.Adam([leaf(1.0)]), [("x.own", "presence")]),
        (program("class x: rate = 1"), program("class x: rate = 2"), [("x.rate", "value")]),
        (program("class C: rate = 1\nx = C()"), program("class C: rate = 2\nx = C()"), [("x.rate", "value")]),
        (weakref.ref(TARGET), program("import weakref\ndef x(): pass\nf, x = x, weakref.ref(x)"), None),
        (functools.partial(int, base=2), functools.partial(int, base=3), None),
        ([1] * 999 + [1], [1] * 999 + [2], [("x.999", "value")]),
        ([1] * 30_000 + [1], [1] * 30_000 + [2], [("x.<the rest>", "value")]),
        ([torch.ones(1)] * 20_101, [torch.ones(1)] * 20_100 + [torch.zeros(1)], [("x.<the rest>", "value")]),
        (nested(50, 1), nested(50, 2), [("x" + ".0" * 50, "value")]),
        ({1: "a"}, {"1": "a"}, [("x.1", "presence"), ("x.'1'", "presence")]),
        ({1: "a", "1": "b"}, {1: "b", "1": "a"}, [("x.1", "value"), ("x.'1'", "value")]),
        ({Meter(1): 1, Meter(2): 2}, {Meter(1): 1, Meter(2): 3}, None),
        (max, min, [("x", "name")]),
        (program("x = lambda: 1"), program("def x(): pass"), [("x", "name")]),
        (program("def x(a=1): pass"), program("def x(a=2): pass"), [("x.defaults.0.0", "value")]),
        (TARGET.step, functools.partial(max, 2), None),
    ],
)
def test_what_differs(before: Any, after: Any, found: list[tuple[str, str]]) -> None:
    all_found = [one for one in differences(before, after) if one[0] != "<graph>"]
    assert all_found if found is None else all_found == found


def not_compared(before: Any, after: Any) -> list[str]:
    return [one.path for one in survey(trace(x=before), trace(x=after))[1]]


@pytest.mark.parametrize(
    ("before", "after", "paths"),
    [
        ((n for n in "a"), (n for n in "b"), ["x"]),
        (threading.Lock(), threading.Lock(), ["x"]),
        (Meter(n for n in "a"), Meter(n for n in "b"), ["x.average"]),
        (Lazy(1.0), Lazy(1.0), ["x"]),
        (nested(200, 1), nested(200, 2), ["x" + ".0" * 101]),
        (program("x = lambda: 1"), program("x = lambda: 2"), ["x"]),
        (program("x = lambda: 1"), program("\n\nx = lambda: 1"), []),
        ([0] * 30_000 + [threading.Lock()], [0] * 30_000 + [threading.Lock()], ["x.<the rest>"]),
        (open, open, []),
        (range(3), range(3), []),
    ],
)
def test_what_nobody_can_look_at_is_named(before: Any, after: Any, paths: list[str]) -> None:
    assert differences(before, after) == []
    assert not_compared(before, after) == paths


def test_of_an_array_of_texts_every_one_is_compared() -> None:
    numpy = pytest.importorskip("numpy", reason="numpy is not installed")
    texts = ["a"] * 1500
    before, after = (numpy.array([*texts, middle, *texts]) for middle in "bc")
    assert differences(before, after) == [("x.1500", "value")]


def test_what_cannot_be_looked_at_is_another_thing_when_its_type_is() -> None:
    assert differences((n for n in "a"), threading.Lock())[0] == ("x", "type")


def test_where_a_watched_name_cannot_be_compared_nothing_is_proved() -> None:
    one, other = trace(x=[1, threading.Lock()]), trace(x=[1, threading.Lock()])
    verdict = judge(one, other, watch=("x",))
    assert (verdict.kind, verdict.not_compared) == (Kind.INCONCLUSIVE, ("x.1",))
    assert verdict.reason.startswith("it is watched, but was not compared: x.1 (lock")
    assert judge(one, other, watch=("y",)).kind is Kind.EQUIVALENT
    assert judge(one, other).not_compared == ("x.1",)
    assert judge(one, trace(x=[2, threading.Lock()]), watch=("x",)).kind is Kind.DIFFERENT


def test_a_list_whose_parts_are_shared_again_and_again_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchmod.verify.snapshot._MOST_LOOKED_AT", 21_000)
    value: Any = [1]
    for _ in range(60):
        value = [value, value]
    assert not_compared(value, value)
    assert list(tensors_in(value)) == []


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

    assert Snapshots("/scratch").of([Shy()])["items"]["0"]["why"] == "unreadable: RuntimeError"


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


def test_traces_that_cannot_be_compared_are_inconclusive() -> None:
    odd = Trace(values={"x": {"kind": "tensor", "shape": [2]}})  # as a program may forge it
    verdict = judge(trace(x=torch.ones(2)), odd)
    assert verdict.kind is Kind.INCONCLUSIVE
    assert verdict.reason == "the two traces cannot be compared: KeyError"
