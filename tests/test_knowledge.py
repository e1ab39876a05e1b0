"""The generated tables against the torch that is installed."""

import pytest

from torchmod.knowledge.signature import Signature
from torchmod.knowledge.signatures import LOSSES
from torchmod.knowledge.stars import STARS


def test_losses_are_those_of_the_installed_torch() -> None:
    pytest.importorskip("torch", reason="torch is not installed: its signatures cannot be compared")
    from torchmod.knowledge.generate import losses_from_torch

    assert losses_from_torch() == LOSSES


def test_star_imports_bind_what_the_installed_torch_binds() -> None:
    pytest.importorskip("torch", reason="torch is not installed: its star imports cannot be compared")
    from torchmod.knowledge.generate import stars_from_torch

    assert stars_from_torch() == STARS


def test_the_legacy_flags_have_the_places_that_old_code_relies_on() -> None:
    """Places as in torch 1.0.1, where they were compared by running it."""
    assert LOSSES["torch.nn.CrossEntropyLoss"].positional[:4] == ("weight", "size_average", "ignore_index", "reduce")
    assert LOSSES["torch.nn.MSELoss"].positional[:2] == ("size_average", "reduce")
    assert LOSSES["torch.nn.functional.nll_loss"].positional[2:4] == ("weight", "size_average")
    assert sum("size_average" in row.parameters for row in LOSSES.values()) == 37


def test_keyword_only_parameters_have_no_place() -> None:
    assert Signature(("a", "b", "c"), ("b",)).positional == ("a", "c")
