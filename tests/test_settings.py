"""Where settings come from, and what is said about those that are wrong."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torchmod.model import Applicability, TorchmodError
from torchmod.settings import Settings, load

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes files into the folder that the test is in."""
    monkeypatch.chdir(tmp_path)

    def write_text(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write_text


def loaded(start: str = ".", *, config: str | None = None, isolated: bool = False, **overrides: Any) -> Settings:
    return load(start, config=config, isolated=isolated, overrides=overrides)


def test_without_a_file_the_defaults_hold_from_the_working_directory(write: Write, tmp_path: Path) -> None:
    assert loaded() == Settings(root=str(tmp_path))


def test_every_setting_can_be_written_in_a_file(write: Write) -> None:
    write(
        "torchmod.toml",
        """
        select = ["loss"]
        extend-select = ["a"]
        ignore = ["b", "c"]
        unsafe = true
        target = "1.4"
        written-for = "0.3"
        exclude = []
        extend-exclude = ["old/*"]
        force-exclude = true
        max-file-size = 7
        plugins = ["house"]
        required-version = ">=0.1"
        jobs = 3
        """,
    )
    found = loaded()
    assert found.levels == {Applicability.SAFE, Applicability.UNSAFE}
    assert found.versions.target == (1, 4, 0)
    assert found.versions.written_for == (0, 3, 0)
    changed = {name for name in Settings._fields if getattr(found, name) != getattr(Settings(), name)}
    assert changed == set(Settings._fields)


def test_the_nearest_file_counts_and_its_folder_is_the_root(write: Write, tmp_path: Path) -> None:
    write("torchmod.toml", "jobs = 1")
    inner = write("a/b/torchmod.toml", "jobs = 2")
    assert loaded().jobs == 1
    assert loaded("a").root == str(tmp_path)
    assert (loaded("a/b").jobs, loaded("a/b").root) == (2, str(inner.parent))


def test_a_file_of_our_own_goes_before_pyproject(write: Write) -> None:
    write("pyproject.toml", "[tool.torchmod]\njobs = 1")
    assert loaded().jobs == 1
    write("torchmod.toml", "jobs = 2")
    assert loaded().jobs == 2


@pytest.mark.parametrize(
    "other",
    ["[tool.other]\njobs = 5", "# [tool.torchmod]", "[tool.torchmod-plugin]\njobs = 5", 'dependencies = ["torchmod"]'],
)
def test_a_pyproject_without_our_section_is_passed_over(write: Write, other: str) -> None:
    write("pyproject.toml", "[tool.torchmod]\njobs = 4")
    write("a/pyproject.toml", other)
    assert loaded("a").jobs == 4


@pytest.mark.parametrize("section", ["[tool]\ntorchmod.jobs = 4", "tool.torchmod = { jobs = 4 }"])
def test_our_section_counts_however_toml_writes_it(write: Write, section: str) -> None:
    write("pyproject.toml", section)
    assert loaded().jobs == 4


def test_the_command_line_goes_over_the_file(write: Write) -> None:
    write("torchmod.toml", 'jobs = 4\ntarget = "1.4"\nextend-exclude = ["a"]')
    found = load(".", config=None, isolated=False, overrides={"jobs": 2, "unsafe": True}, exclude=["b"])
    assert (found.jobs, found.unsafe, found.target, found.extend_exclude) == (2, True, "1.4", ("a", "b"))


def test_isolated_reads_no_file_and_config_reads_the_one_that_is_named(write: Write) -> None:
    write("torchmod.toml", "jobs = 4")
    write("other/mine.toml", "jobs = 7")
    assert loaded(isolated=True).jobs == 0
    assert loaded(config="other/mine.toml").jobs == 7
    assert loaded(config="other/mine.toml").root == os.path.abspath("other")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("job = 3", "there is no setting `job`; did you mean `jobs`?"),
        ("extend_select = []", "there is no setting `extend_select`; did you mean `extend-select`?"),
        ("root = '/'", "there is no setting `root`"),
        ("[per-file]\na = 1", "there is no setting `per-file`"),
        ("select = 'loss'", "`select` must be a list of strings"),
        ("select = [1]", "`select` must be a list of strings"),
        ("unsafe = 'yes'", "`unsafe` must be true or false"),
        ("unsafe = 1", "`unsafe` must be true or false"),
        ("jobs = true", "`jobs` must be a number"),
        ("jobs = '2'", "`jobs` must be a number"),
        ("target = 1.10", "`target` must be a string"),
        ("jobs =", "not valid TOML"),
        ("required-version = 'newest'", "`required-version` must be like 0.1.0 or >=0.1, not `newest`"),
        ("required-version = '>=0.1,<2'", "`required-version` must be like 0.1.0 or >=0.1"),
        ("required-version = '>=99'\nnew-key = 1", "torchmod >=99 is required; this is "),
        ("required-version = '0.0.1'", "torchmod 0.0.1 is required; this is "),
    ],
)
def test_what_is_wrong_in_a_file_is_named_with_the_file(write: Write, text: str, told: str) -> None:
    path = write("torchmod.toml", text)
    with pytest.raises(TorchmodError, match=re.escape(told)) as caught:
        loaded()
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize("text", ["[tool]\ntorchmod = 1", "tool.torchmod = 'fast'", "tool.torchmod = []"])
def test_a_section_that_is_no_table_is_named(write: Write, text: str) -> None:
    write("pyproject.toml", text)
    with pytest.raises(TorchmodError, match=r"pyproject\.toml: `tool\.torchmod` must be a table"):
        loaded()


@pytest.mark.parametrize("text", ["tool = 'torchmod'", "", "[tool.ruff]"])
def test_a_pyproject_that_is_named_but_has_no_section_of_ours_sets_nothing(write: Write, text: str) -> None:
    path = write("pyproject.toml", text)
    assert loaded() == loaded(config="pyproject.toml") == Settings(root=str(path.parent))


@pytest.mark.parametrize("required", ["0.1.0", "==0.1", "0.1", ">=0.1", ">= 0.0.9"])
def test_a_required_version_that_this_one_meets_is_fine(
    write: Write, required: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torchmod.__version__", "0.1.0")
    write("torchmod.toml", f"required-version = '{required}'")
    assert loaded().required_version == required


def test_a_file_that_is_not_there_or_is_not_text_is_named(write: Write, tmp_path: Path) -> None:
    with pytest.raises(TorchmodError, match=r"nope\.toml: cannot be read: No such file"):
        loaded(config="nope.toml")
    (tmp_path / "torchmod.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TorchmodError, match=r"torchmod\.toml: not valid TOML"):
        loaded()


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        ({"target": "abc"}, "`target`: `abc` is not a version"),
        ({"written_for": "0.3.x"}, "`written-for`: `0.3.x` is not a version"),
        ({"jobs": -1}, "`jobs` must be 0 (one for each processor) or more"),
    ],
)
def test_a_wrong_value_on_the_command_line_is_named(write: Write, overrides: dict[str, Any], told: str) -> None:
    with pytest.raises(TorchmodError, match=re.escape(told)):
        loaded(**overrides)
