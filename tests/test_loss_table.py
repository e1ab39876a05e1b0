"""The table of `loss-reduction` by property: with every loss the string does what the flags did, to the last bit."""

import itertools
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import pytest

pytest.importorskip("torch", reason="torch is not installed: the losses cannot be run")

import torch
import torch.nn.functional as F  # noqa: N812
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torchmod.transforms.loss_reduction import reduction_for

from torchmod.knowledge.signatures import LOSSES

Flag = bool | None
Table = Callable[[Flag, Flag], str | None]
Shape = tuple[int, ...]
FLAGS = list(itertools.product((None, True, False), repeat=2))
BASES = {"torch.nn.modules.loss._Loss", "torch.nn.modules.loss._WeightedLoss"}


@dataclass(frozen=True)
class Draw:
    """What a loss is fed with: numbers of one dtype, from one seed."""

    shape: Shape
    dtype: torch.dtype
    seed: int

    @cached_property
    def generator(self) -> torch.Generator:
        return torch.Generator().manual_seed(self.seed)

    @property
    def rows(self) -> Shape:
        """At least two dimensions: samples, and classes or features."""
        return (*self.shape, 2, 2)[: max(2, len(self.shape))]

    def real(self, shape: Shape | None = None) -> Tensor:
        return torch.randn(shape or self.shape, generator=self.generator, dtype=self.dtype)

    def probability(self, shape: Shape | None = None) -> Tensor:
        drawn = torch.rand(shape or self.shape, generator=self.generator, dtype=self.dtype)
        return drawn.clamp(0.01, 0.99)

    def sign(self, shape: Shape | None = None) -> Tensor:
        return self.probability(shape).round() * 2 - 1

    def classes(self) -> Tensor:
        rows = self.rows
        return torch.randint(rows[1], (rows[0], *rows[2:]), generator=self.generator)

    def labels(self) -> Tensor:
        """For each row the one class that it has, and the mark that there are no more."""
        rows = self.rows[:2]
        labels = torch.full(rows, -1)
        labels[:, 0] = torch.randint(rows[1], rows[:1], generator=self.generator)
        return labels


Inputs = Callable[[Draw], tuple[Tensor, ...]]


def regression(draw: Draw) -> tuple[Tensor, ...]:
    return draw.real(), draw.real()


def classes(draw: Draw) -> tuple[Tensor, ...]:
    return draw.real(draw.rows), draw.classes()


def log_classes(draw: Draw) -> tuple[Tensor, ...]:
    return draw.real(draw.rows).log_softmax(1), draw.classes()


def signs(draw: Draw) -> tuple[Tensor, ...]:
    return draw.real(), draw.sign()


INPUTS: dict[str, tuple[tuple[str, ...], Inputs]] = {
    "binary_cross_entropy": (("BCELoss",), lambda draw: (draw.probability(), draw.probability())),
    "binary_cross_entropy_with_logits": (("BCEWithLogitsLoss",), lambda draw: (draw.real(), draw.probability())),
    "cosine_embedding_loss": (
        ("CosineEmbeddingLoss",),
        lambda draw: (draw.real(draw.rows[:2]), draw.real(draw.rows[:2]), draw.sign(draw.rows[:1])),
    ),
    "cross_entropy": (("CrossEntropyLoss",), classes),
    "hinge_embedding_loss": (("HingeEmbeddingLoss",), signs),
    "kl_div": (("KLDivLoss",), lambda draw: (draw.real(draw.rows).log_softmax(1), draw.probability(draw.rows))),
    "l1_loss": (("L1Loss",), regression),
    "margin_ranking_loss": (("MarginRankingLoss",), lambda draw: (draw.real(), draw.real(), draw.sign())),
    "mse_loss": (("MSELoss",), regression),
    "multi_margin_loss": (
        ("MultiMarginLoss",),
        lambda draw: (draw.real(draw.rows[:2]), draw.labels()[:, 0].contiguous()),
    ),
    "multilabel_margin_loss": (("MultiLabelMarginLoss",), lambda draw: (draw.real(draw.rows[:2]), draw.labels())),
    "multilabel_soft_margin_loss": (
        ("MultiLabelSoftMarginLoss",),
        lambda draw: (draw.real(draw.rows), draw.probability(draw.rows).round()),
    ),
    "nll_loss": (("NLLLoss", "NLLLoss2d"), log_classes),
    "poisson_nll_loss": (("PoissonNLLLoss",), lambda draw: (draw.real(), draw.probability() * 3)),
    "smooth_l1_loss": (("SmoothL1Loss",), regression),
    "soft_margin_loss": (("SoftMarginLoss",), signs),
    "triplet_margin_loss": (
        ("TripletMarginLoss",),
        lambda draw: (draw.real(draw.rows[:2]), draw.real(draw.rows[:2]), draw.real(draw.rows[:2])),
    ),
}
"""By the function: the modules of the same loss, and what it is fed with."""
NAMES = {
    **{f"torch.nn.functional.{function}": function for function in INPUTS},
    **{f"torch.nn.{module}": function for function, (modules, _) in INPUTS.items() for module in modules},
}
DRAWS = st.builds(
    Draw,
    st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple),
    st.sampled_from([torch.float32, torch.float64]),
    st.integers(0, 99),
)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """The flags warn on every call; and threads that share a few numbers mostly wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    torch.set_num_threads(threads)


def outcome(name: str, inputs: tuple[Tensor, ...], arguments: dict[str, object]) -> list[Tensor]:
    """What a loss gives, and the gradient of its first input."""
    leaf = inputs[0].detach().clone().requires_grad_()
    if name.startswith("torch.nn.functional."):
        loss = getattr(F, name.rpartition(".")[2])(leaf, *inputs[1:], **arguments)
    else:
        loss = getattr(nn, name.rpartition(".")[2])(**arguments)(leaf, *inputs[1:])
    weights = torch.arange(1.0, loss.numel() + 1, dtype=loss.dtype).reshape(loss.shape)
    (loss * weights).sum().backward()
    assert leaf.grad is not None
    return [loss.detach(), leaf.grad]


def check(name: str, table: Table, draw: Draw) -> None:
    """Hold a loss with each pair of flags to the same loss with the string that a table gives."""
    inputs = INPUTS[NAMES[name]][1](draw)
    expected: dict[str | None, list[Tensor]] = {}
    for size_average, reduce in FLAGS:
        reduction = table(size_average, reduce)
        if reduction not in expected:
            expected[reduction] = outcome(name, inputs, {"reduction": reduction} if reduction else {})
        flags = {"size_average": size_average, "reduce": reduce}
        for old, new in zip(outcome(name, inputs, flags), expected[reduction], strict=True):
            assert old.shape == new.shape, f"{flags}: {old.shape}, and with {reduction!r} {new.shape}"
            assert old.dtype == new.dtype
            assert torch.equal(old, new), f"{flags}: {old}, and with {reduction!r} {new}"


def test_every_loss_that_has_the_flags_is_run() -> None:
    assert {name for name, row in LOSSES.items() if "size_average" in row.parameters} == NAMES.keys() | BASES


@pytest.mark.parametrize("name", NAMES)
def test_the_string_does_what_the_flags_did(name: str) -> None:
    @settings(max_examples=15, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(DRAWS)
    def holds(draw: Draw) -> None:
        check(name, reduction_for, draw)

    holds()


@pytest.mark.parametrize("name", sorted(BASES))
@pytest.mark.parametrize(("size_average", "reduce"), FLAGS)
def test_the_base_of_the_losses_derives_the_same_string(name: str, size_average: Flag, reduce: Flag) -> None:
    base = getattr(nn.modules.loss, name.rpartition(".")[2])
    loss = base(size_average=size_average, reduce=reduce)
    assert loss.reduction == (reduction_for(size_average, reduce) or "mean")


WRONG_TABLES: dict[str, Table] = {
    "sum and mean exchanged": lambda average, reduce: {"sum": "mean", "mean": "sum"}.get(
        str(reduction_for(average, reduce)), reduction_for(average, reduce)
    ),
    "reduce ignored": lambda average, reduce: "sum" if average is False else "mean",
    "size_average wins": lambda average, reduce: {True: "mean", False: "sum"}.get(
        average, "none" if reduce is False else "mean"
    ),
    "None is False for size_average": lambda average, reduce: reduction_for(bool(average), reduce),
    "None is False for reduce": lambda average, reduce: reduction_for(average, bool(reduce)),
    "reduce=True alone is sum": lambda average, reduce: (
        "sum" if average is None and reduce else reduction_for(average, reduce)
    ),
    "reduce=False alone is mean": lambda average, reduce: (
        "mean" if average is None and reduce is False else reduction_for(average, reduce)
    ),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wrong", WRONG_TABLES)
def test_a_wrong_table_is_rejected(name: str, wrong: str) -> None:
    with pytest.raises(AssertionError, match="and with"):
        check(name, WRONG_TABLES[wrong], Draw((3, 4), torch.float64, 0))
