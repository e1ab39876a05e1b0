"""Words that a user gives: versions, names and tags."""

import pytest

from torchmod.model import TorchmodError
from torchmod.selection import choose, hears_unused, rows
from torchmod.settings import Settings
from torchmod.words import nearest, version

KNOWN = {"data-item": ("removed",), "loss-reduction": ("deprecated", "loss"), "lazy-h5py": ("h5py",)}


@pytest.mark.parametrize(
    ("word", "hint"),
    [("loss-reductoin", "loss-reduction"), ("dataitem", "data-item"), ("lasy-h5", "lazy-h5py"), ("quantize", None)],
)
def test_a_misspelt_word_gets_the_nearest_one_or_none(word: str, hint: str | None) -> None:
    assert nearest(word, KNOWN) == (f"; did you mean `{hint}`?" if hint else "")


def test_versions_compare_by_number_and_not_by_how_many_are_written() -> None:
    assert version("1.10") > version("1.9") > version("1.4.1") > version("1.4") > version("0.4.1.1") > version("0.4.1")
    assert version("1") == version("1.0") == version("1.0.0")


@pytest.mark.parametrize("text", ["", "1.", "v1.0", "1.0a0", "1.13.1+cu117", "latest", "1,0", "-1", "\u0661.0", "1 .0"])
def test_what_is_no_version_is_named_and_shown_how_to_write(text: str) -> None:
    with pytest.raises(TorchmodError, match=r"is not a version: write it like 1\.10 or 0\.4\.1"):
        version(text)


@pytest.mark.parametrize(
    ("select", "extend", "ignore", "chosen"),
    [
        ((), (), (), ["data-item", "lazy-h5py", "loss-reduction"]),
        (("loss-reduction",), (), (), ["loss-reduction"]),
        (("loss",), ("h5py",), (), ["lazy-h5py", "loss-reduction"]),
        ((), ("h5py",), (), ["data-item", "lazy-h5py", "loss-reduction"]),
        ((), (), ("deprecated", "lazy-h5py"), ["data-item"]),
        (("loss",), ("loss-reduction",), ("loss",), []),
    ],
)
def test_names_and_tags_choose_and_ignoring_wins(
    select: tuple[str, ...], extend: tuple[str, ...], ignore: tuple[str, ...], chosen: list[str]
) -> None:
    assert choose(KNOWN, select, extend, ignore) == chosen


@pytest.mark.parametrize("where", ["select", "extend", "ignore"])
def test_an_unknown_name_is_an_error_wherever_it_stands(where: str) -> None:
    with pytest.raises(TorchmodError, match="no transform or tag called `los`; did you mean `loss`"):
        choose(KNOWN, **{where: ("los",)})


def test_the_rows_are_those_of_the_chosen_transforms() -> None:
    assert list(rows(Settings(select=("loss",)))) == ["loss-reduction"]
    assert rows(Settings(ignore=("loss",))) == {}


@pytest.mark.parametrize(
    ("settings", "heard"),
    [
        (Settings(), True),
        (Settings(ignore=("unused-suppression",)), False),
        (Settings(select=("loss",)), False),
        (Settings(select=("loss", "unused-suppression")), True),
        (Settings(select=("loss",), extend_select=("unused-suppression",)), True),
        (Settings(select=("unused-suppression",), ignore=("unused-suppression",)), False),
    ],
)
def test_unused_suppressions_are_selected_and_ignored_by_name(settings: Settings, heard: bool) -> None:
    rows(settings)  # the name is known: no error
    assert hears_unused(settings) is heard
