"""What a transform says of itself, and what is generated from it."""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from torchmod.docs import explanation, table, update
from torchmod.knowledge.examples import EXAMPLES
from torchmod.knowledge.index import INDEX
from torchmod.registry import Transform, discover
from torchmod.words import version

ROOT = Path(__file__).parent.parent
TRANSFORMS = discover()
each_transform = pytest.mark.parametrize("one", TRANSFORMS.values(), ids=lambda one: one.name)


@each_transform
def test_name_module_and_golden_folder_are_one(one: Transform) -> None:
    module = one.name.replace("-", "_")
    assert one.function.__module__ == f"torchmod.transforms.{module}"
    assert one.function.__name__ == module
    assert (ROOT / "golden" / module).is_dir()


@each_transform
def test_docstring_has_a_line_for_the_table_and_a_body_with_the_reason(one: Transform) -> None:
    first, blank, *body = one.doc.splitlines()
    assert re.fullmatch(r"[A-Z].{20,100}\.", first)
    assert blank == ""
    assert len(" ".join(body)) > 200
    assert all(len(line) <= 120 for line in one.doc.splitlines())


@each_transform
def test_version_tags_and_link(one: Transform) -> None:
    assert version(one.since)
    assert one.tags
    assert all(re.fullmatch(r"[a-z0-9-]+", tag) for tag in one.tags)
    assert not set(one.tags) & set(TRANSFORMS)
    assert one.link.startswith("https://")


@each_transform
def test_functions_are_short(one: Transform) -> None:
    module = inspect.getmodule(one.function)
    for _, function in inspect.getmembers(module, inspect.isfunction):
        if function.__module__ == one.function.__module__:
            assert len(inspect.getsource(function).splitlines()) <= 45, function.__name__


@each_transform
def test_it_asks_for_exactly_one_kind_of_subject(one: Transform) -> None:
    asked = [bool(one.calls or one.keywords), one.on_module, bool(one.documents), one.on_project]
    assert sum(asked) == 1


def test_index_is_up_to_date() -> None:
    assert {name: one.row for name, one in TRANSFORMS.items()} == INDEX


def test_docs_are_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert update(write=False) == [], "run `torchmod docs --write`"


def test_table_and_explanation_name_everything() -> None:
    for name, one in TRANSFORMS.items():
        assert f"{name} " in table(TRANSFORMS)
        text = explanation(name, TRANSFORMS)
        assert one.doc in text
        assert EXAMPLES[name].before.splitlines()[-1] in text
        assert EXAMPLES[name].levels


def test_a_new_transform_is_complete_and_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from torchmod.model import TorchmodError
    from torchmod.scaffold import new

    (tmp_path / "transforms").mkdir()
    (tmp_path / "golden").mkdir()
    monkeypatch.chdir(tmp_path)
    written = {str(path) for path in new("old-thing")}
    assert written == {
        "transforms/old_thing.py",
        *(str(p.relative_to(tmp_path)) for p in (tmp_path / "golden").glob("*/*")),
    }
    assert {p.name.partition("_")[0] for p in (tmp_path / "golden/old_thing").iterdir()} == {
        "rewrites",
        "keeps",
        "reports",
    }
    check = "import old_thing; print(old_thing.old_thing.name, old_thing.old_thing.words)"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "transforms")}
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, env=environment, check=False)
    assert done.stdout == "old-thing ('old_thing',)\n", done.stderr
    with pytest.raises(TorchmodError, match="is there already"):
        list(new("old-thing"))
    with pytest.raises(TorchmodError, match="cannot be a transform's name"):
        list(new("Old Thing"))
