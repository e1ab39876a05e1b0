"""Declaring, finding and loading transforms."""

import sys
import types
from pathlib import Path

import pytest

from torchmod.model import TorchmodError
from torchmod.registry import PACKAGE, Transform, discover, transform


def test_the_built_in_ones_are_found_by_walking_the_package() -> None:
    found = discover()
    folder = Path(__file__).parent.parent / "transforms"
    assert set(found) == {p.stem.replace("_", "-") for p in folder.glob("*.py") if p.stem != "__init__"}
    assert list(found) == sorted(found)
    assert all(isinstance(one, Transform) for one in found.values())


def test_a_users_module_called_transforms_is_never_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "transforms.py").write_text("raise SystemExit('a user file was run')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert discover()


def test_a_transform_from_outside_the_package_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    stranger = types.ModuleType("stranger")
    exec("def stranger(call):\n    yield", stranger.__dict__)
    monkeypatch.setitem(sys.modules, "stranger", stranger)
    one = transform(names=("x",), module=True, since="1.0")(stranger.stranger)
    monkeypatch.setattr(sys.modules[PACKAGE], "stranger", one, raising=False)
    with pytest.raises(TorchmodError, match="stranger is not part of"):
        discover()


def test_a_plugin_that_is_not_installed_is_named() -> None:
    with pytest.raises(TorchmodError, match="there is no plugin `nobody`"):
        discover(["nobody"])


def test_the_words_of_a_transform_are_the_last_parts_of_its_names() -> None:
    one = discover()["loss-reduction"]
    assert {"MSELoss", "nll_loss", "_WeightedLoss", "size_average"} <= set(one.words)
    assert not any("." in word for word in one.words)
