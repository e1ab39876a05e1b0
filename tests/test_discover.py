"""Which files are looked at, and the reason given for those that are not."""

import os
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from torchmod.discover import discover, is_generated, is_python
from torchmod.model import TorchmodError
from torchmod.settings import Settings


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def make(*names: str, text: str = "") -> None:
    for name in names:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def repository(folder: str = ".") -> None:
    Path(folder, ".git", "info").mkdir(parents=True)


def found(*paths: str, documents: Sequence[str] = (), **settings: Any) -> list[str]:
    all_found = discover(paths or ["."], Settings(root=os.getcwd(), **settings), documents)
    return [one.path for one in all_found if not one.reason]


def reasons(*paths: str, **settings: Any) -> dict[str, str]:
    return {one.path: one.reason for one in discover(paths or ["."], Settings(root=os.getcwd(), **settings))}


# what is looked at


def test_python_files_of_all_folders_are_found_and_nothing_else() -> None:
    make("b.py", "a/c.py", "a/b/d.pyw", "a.txt", "py", "x.pyc", "y.pyi", "a/z.PY")
    assert sorted(found()) == ["a/b/d.pyw", "a/c.py", "b.py"]


def test_documents_are_found_when_a_transform_reads_them() -> None:
    make("run.sh", "Dockerfile", "x/docker-compose.yml", "a.py")
    assert sorted(found(documents=("*.sh", "Dockerfile"))) == ["Dockerfile", "a.py", "run.sh"]


def test_paths_are_relative_to_the_working_directory_however_they_are_given() -> None:
    make("a/b.py", "c.py")
    (Path.cwd().parent / "beside.py").write_text("", encoding="utf-8")
    assert found("./a/../c.py") == found(str(Path.cwd() / "c.py")) == ["c.py"]
    assert found(str(Path.cwd() / "a")) == found("a/") == found("./a/.") == ["a/b.py"]
    assert found("../beside.py") == ["../beside.py"]


def test_a_file_is_found_once_however_often_it_is_named_and_in_the_same_order() -> None:
    make("a/b.py", "c.py", "d.py")
    orders = [("c.py", ".", "a", "a/b.py"), ("a/b.py", "a", "c.py", "."), (".", "./c.py", "c.py", "a/", "a/b.py")]
    assert len({tuple(found(*order)) for order in orders}) == 1
    assert sorted(found(*orders[0])) == ["a/b.py", "c.py", "d.py"]


def test_a_file_that_is_named_counts_as_named_though_its_folder_is_too() -> None:
    make("a.py", "b.py")
    for order in ((".", "a.py"), ("a.py", ".")):
        explicit = {one.path for one in discover(order, Settings(root=os.getcwd())) if one.explicit}
        assert explicit == {"a.py"}


def test_a_deep_tree_is_no_problem(tmp_path: Path) -> None:
    deep = tmp_path / "/".join("a" * 400)
    deep.mkdir(parents=True)
    (deep / "x.py").write_text("", encoding="utf-8")
    assert found() == ["/".join([*"a" * 400, "x.py"])]


def test_a_name_that_is_no_text_comes_through() -> None:
    if os.name == "nt":
        pytest.skip("names are text on Windows")
    name = os.fsdecode(b"caf\xe9.py")
    Path(name).write_text("", encoding="utf-8")
    assert found() == [name]


# what is left out


def test_a_path_that_is_not_there_is_an_error() -> None:
    make("a.py")
    for path in ("nope", "nope.py", "a.py/b", ""):
        with pytest.raises(TorchmodError):
            found("a.py", path)


def test_copies_of_other_projects_are_left_out_with_the_reason() -> None:
    make("third_party/a.py", "lib/vendor/b.py", "lib/c.py")
    assert reasons() == {
        "third_party": "holds copies of other projects (excluded by default)",
        "lib/vendor": "holds copies of other projects (excluded by default)",
        "lib/c.py": "",
    }
    assert found("third_party") == ["third_party/a.py"]
    assert found("third_party/a.py") == ["third_party/a.py"]


def test_what_tools_put_there_is_left_out_without_a_word() -> None:
    make(*(f"{name}/x.py" for name in (".venv", ".tox", "build", "dist", "node_modules", "__pycache__", "a.egg-info")))
    make("builder/x.py", "a.py")
    assert reasons() == {"a.py": "", "builder/x.py": ""}


def test_symbolic_links_are_left_out_with_the_reason_and_loops_end() -> None:
    make("real.py", "folder/x.py")
    os.symlink("real.py", "link.py")
    os.symlink("gone.py", "broken.py")
    os.symlink(".", "folder/loop")
    os.symlink("self.py", "self.py")
    link = "a symbolic link"
    assert reasons() == {"real.py": "", "folder/x.py": "", "link.py": link, "broken.py": link, "self.py": link}
    assert reasons("link.py") == {"link.py": "a symbolic link: name the file it leads to"}
    with pytest.raises(TorchmodError, match=r"self\.py: Too many levels"):
        found("self.py")
    with pytest.raises(TorchmodError, match=r"broken\.py: there is no such file"):
        found("broken.py")


def test_what_is_no_regular_file_is_left_out_with_the_reason() -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("there are no pipes with a name here")
    os.mkfifo("pipe.py")
    Path("folder.py").mkdir()
    assert reasons() == {"pipe.py": "not a regular file"} == reasons("pipe.py")


def test_a_folder_that_cannot_be_listed_is_a_problem_and_not_left_out_on_purpose(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make("a.py", "shut/b.py")
    scandir = os.scandir

    def deny(path: str) -> Any:
        if os.path.basename(path) == "shut":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", deny)
    everything = {one.path: one for one in discover(["."], Settings(root=os.getcwd()))}
    assert everything["shut"].unreadable
    assert everything["shut"].reason == "cannot be listed: Permission denied"
    assert not everything["a.py"].reason


@pytest.mark.parametrize(
    ("patterns", "left"),
    [
        (["test_*.py"], ["a.py", "src/gen/c.py", "src/gen/deep/d.py"]),
        (["src"], ["a.py", "test_a.py"]),
        (["src/"], ["a.py", "test_a.py"]),
        (["gen"], ["a.py", "src/test_b.py", "test_a.py"]),
        (["src/gen"], ["a.py", "src/test_b.py", "test_a.py"]),
        (["src/*.py"], ["a.py", "test_a.py"]),  # in Python's shell patterns * goes over folders
        (["/a.py"], ["src/gen/c.py", "src/gen/deep/d.py", "src/test_b.py", "test_a.py"]),
        (["**/d.py"], ["a.py", "src/gen/c.py", "src/test_b.py", "test_a.py"]),
        (["nothing"], ["a.py", "src/gen/c.py", "src/gen/deep/d.py", "src/test_b.py", "test_a.py"]),
    ],
)
def test_patterns_exclude_by_name_or_by_path_from_the_root(patterns: list[str], left: list[str]) -> None:
    make("a.py", "test_a.py", "src/test_b.py", "src/gen/c.py", "src/gen/deep/d.py")
    assert sorted(found(extend_exclude=tuple(patterns))) == left


def test_what_is_named_is_looked_at_though_excluded_unless_that_is_forced() -> None:
    make("old/a.py", "old/deep/b.py", "c.py")
    named = ["old/a.py", "old/deep", "c.py"]
    assert sorted(found(*named, extend_exclude=("old",))) == ["c.py", "old/a.py", "old/deep/b.py"]
    assert found(*named, extend_exclude=("old",), force_exclude=True) == ["c.py"]
    assert reasons("old", "old/a.py", extend_exclude=("old",), force_exclude=True) == {
        "old": "excluded",
        "old/a.py": "excluded",
    }
    assert found("old/deep/b.py", extend_exclude=("old/deep",), force_exclude=True) == []


def test_replacing_the_exclusions_lets_everything_in() -> None:
    make("third_party/a.py", "build/b.py", ".hidden/c.py")
    assert sorted(found(exclude=())) == ["build/b.py", "third_party/a.py"]


# git


def git(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run git as if nothing were set for it outside; skips the test where there is none."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-c", "core.excludesFile=", *arguments]
    try:
        return subprocess.run(command, input=text, capture_output=True, text=True, env=environment, check=False)
    except FileNotFoundError:
        pytest.skip("git is not there to ask")


def ignored_by_git(paths: Iterable[str]) -> set[str]:
    asked = git("check-ignore", "--no-index", "-z", "--stdin", text="\0".join(paths))
    assert asked.returncode in (0, 1), asked.stderr
    return set(filter(None, asked.stdout.split("\0")))


FILES = [
    *("a.py", "b.py", "keep.py", "gen_x.py", "space name.py", "#hash.py", "!bang.py"),
    *("out/a.py", "out/keep.py", "src/a.py", "src/out/a.py", "src/keep.py", "src/gen_y.py", "src/deep/er/a.py"),
    *("data/x/a.py", "data/x/y/a.py", "data/a.py", "logs/a.py", "logs/deep/keep.py"),
]


@pytest.mark.parametrize(
    "rules",
    [
        {".gitignore": "*.py\n!keep.py\n"},
        {".gitignore": "out/\n"},
        {".gitignore": "/out\n"},
        {".gitignore": "out/*\n!out/keep.py\n"},
        {".gitignore": "out\n!out/keep.py\n"},
        {".gitignore": "gen_*.py\n", "src/.gitignore": "!gen_y.py\n"},
        {".gitignore": "!a.py\n", "src/.gitignore": "a.py\n"},
        {".gitignore": "a.py\n", "src/.gitignore": "!a.py\n", "src/deep/.gitignore": "er\n"},
        {"src/.gitignore": "/a.py\n"},
        {"src/.gitignore": "deep/er\n"},
        {".gitignore": "data/**/a.py\n"},
        {".gitignore": "**/out\ndata/*/a.py\n"},
        {".gitignore": "logs/**\n!logs/**/\n!logs/**/keep.py\n"},
        {".gitignore": "# a comment\n\n\\#hash.py\n\\!bang.py\nspace\\ name.py  \n"},
        {".gitignore": "[ab].py\n?eep.py\n"},
        {".gitignore": "a.py\r\nout/\r\n"},
        {".gitignore": "\ufeffa.py\n"},
        {".gitignore": "!\n\\\n[z-a].py\nb.py\n"},
        {".gitignore": "*\n!*/\n!keep.py\n"},
        {".git/info/exclude": "keep.py\n"},
        {".git/info/exclude": "keep.py\nout/\n", ".gitignore": "!keep.py\n"},
    ],
    ids=lambda rules: " + ".join(f"{name}: {text!r}" for name, text in rules.items()),
)
def test_what_git_ignores_is_left_out(rules: dict[str, str], tmp_path: Path) -> None:
    git("init", "-q", ".")
    make(*FILES)
    for name, text in rules.items():
        (tmp_path / name).write_bytes(text.encode())
    assert set(found()) == set(FILES) - ignored_by_git(FILES)


def test_rules_of_the_repository_hold_when_only_a_part_of_it_is_named() -> None:
    repository()
    make("src/a.py", "src/gen/b.py", "src/deep/c.py")
    make(".gitignore", text="gen/\n")
    make("src/.gitignore", text="deep\n")
    assert found("src") == ["src/a.py"]


def test_a_named_file_or_folder_is_looked_at_though_git_ignores_it_unless_that_is_forced() -> None:
    repository()
    make("out/a.py", "out/deep/b.py", "c.py")
    make(".gitignore", text="out/\n")
    assert found() == ["c.py"]
    assert found("out/a.py") == ["out/a.py"]
    assert sorted(found("out")) == ["out/a.py", "out/deep/b.py"]
    assert found("out/deep") == ["out/deep/b.py"]
    assert found("out", "out/a.py", "out/deep", force_exclude=True) == []


def test_without_a_repository_git_has_no_say() -> None:
    make("a.py", "out/b.py")
    make(".gitignore", text="out/\n")
    assert sorted(found()) == ["a.py", "out/b.py"]


def test_a_repository_inside_another_is_left_out_with_the_reason_unless_it_is_named() -> None:
    repository()
    make("a.py", "sub/b.py", "module/c.py")
    make(".gitignore", text="sub/\n")
    Path("module/.git").write_text("gitdir: ../.git/modules/module\n", encoding="utf-8")
    assert reasons() == {"a.py": "", "module": "a repository of its own"}
    repository("sub")
    assert found("sub") == ["sub/b.py"]  # the outer rules do not hold in it
    assert found("module") == ["module/c.py"]


def test_a_folder_of_repositories_is_looked_at_each_with_its_own_rules() -> None:
    repository("one")
    repository("two")
    make("one/a.py", "one/x.py", "two/a.py", "two/x.py")
    make("one/.gitignore", text="x.py\n")
    assert sorted(found()) == ["one/a.py", "two/a.py", "two/x.py"]


def test_an_unreadable_gitignore_ignores_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    repository()
    make("a.py")
    Path(".gitignore").write_bytes(b"\xff\xfe*\n")
    assert found() == ["a.py"]

    def deny(*args: object, **kwargs: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", deny)
    assert found() == ["a.py"]


# what a file is


@pytest.mark.parametrize(
    ("name", "first", "python"),
    [
        ("a.py", b"", True),
        ("a.pyw", b"", True),
        ("bin/train", b"#!/usr/bin/env python3\nimport torch", True),
        ("bin/train", b"#! /usr/bin/python", True),
        ("bin/train", b"#!/bin/sh\npython train.py", False),
        ("bin/train", b"#!/usr/bin/env ipython", False),
        ("bin/train", b"import torch", False),
        ("train.sh", b"#!/usr/bin/env python", False),
        ("a.pyi", b"", False),
    ],
)
def test_python_is_known_by_its_name_or_its_first_line(name: str, first: bytes, python: bool) -> None:
    assert is_python(name, first) is python


@pytest.mark.parametrize(
    ("text", "generated"),
    [
        ("# Generated by the protocol buffer compiler.  DO NOT EDIT!\n", True),
        ("#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n# @generated\n", True),
        ("# This file was automatically generated by SWIG\n", True),
        ("  # autogenerated by tools/gen.py\n", True),
        ("# Code generated by stubgen. DO NOT EDIT.\n", True),
        ("x = 'do not edit'\n", False),
        ('"""Files that are @generated."""\n', False),
        ("import torch\n" * 12 + "# @generated\n", False),
        ("# the samples are generated by a GAN\n", False),
    ],
)
def test_a_generated_file_says_so_in_a_comment_of_its_first_lines(text: str, generated: bool) -> None:
    assert is_generated(text.encode()) is generated
