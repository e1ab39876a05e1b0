"""Fixes over several files: one transaction each, on one snapshot, in rounds until nothing changes."""

import ast
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from torchmod.api import Edit, Finding, Fix, Need, ProjectFiles, Refused, Span, transform
from torchmod.engine import Engine, Job, Plan
from torchmod.model import Applicability, Outcome, Status
from torchmod.registry import Transform
from torchmod.rounds import MAX_ROUNDS, run_rounds
from torchmod.subjects import Versions

SAFE = frozenset([Applicability.SAFE])


def occurrences(files: ProjectFiles, word: str) -> list[tuple[Any, Span]]:
    """Every place of a name, as name or attribute, with the module that it is in."""
    found = []
    for module in files.modules:
        for node in ast.walk(module.tree):
            if getattr(node, "id", None) == word or getattr(node, "attr", None) == word:
                end = module.source.span(node).end
                found.append((module, Span(end - len(word), end)))
    return found


def rename(old: str, new: Callable[[Any], str], name: str = "rename", **fix: Any) -> Transform:
    """A transform that gives every place of a name, over all files, a new text: one fix for all of them."""

    @transform(project=True, names=(old,), since="1.0")
    def renaming(files: ProjectFiles) -> Iterator[Finding]:
        places = occurrences(files, old)
        if places:
            edits = tuple(Edit(span.start, span.end, new(module), module.path) for module, span in places)
            module, span = places[0]
            yield module.safe_fix(f"rename {old}", Fix(edits, **fix), at=span)

    return replace(renaming, name=name)


@transform(module=True, names=("alone",), since="1.0")
def single(module: Any) -> Iterator[Finding]:
    """A fix in one file, as all others are made."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute) and node.attr == "alone":
            end = module.source.span(node).end
            yield module.safe_fix("say single", Fix((Edit(end - 5, end, "single"),)), at=module.source.span(node))


def outcomes_of(transforms: Sequence[Transform], files: dict[str, str], **plan: Any) -> dict[str, Outcome]:
    settings = {"levels": SAFE, "apply": True, **plan}
    whole = Plan(tuple(transforms), frozenset(one.name for one in transforms), **settings)
    jobs = [Job(path, text.encode()) for path, text in files.items()]
    return {o.path: o for o in run_rounds(whole, jobs, lambda some: [Engine(whole).run(job) for job in some])}


def texts(outcomes: dict[str, Outcome]) -> dict[str, str | None]:
    return {path: o.new.decode() if o.new is not None else None for path, o in outcomes.items()}


def told(outcomes: dict[str, Outcome]) -> list[tuple[str, int, str, str, bool]]:
    return [
        (f.path, f.place.line if f.place else 0, str(f.applicability), f.message, f.fixed)
        for o in outcomes.values()
        for f in o.findings
    ]


FILES = {"a.py": "import lib\nlib.old\n", "b.py": "import lib\nx = lib.old\n", "c.py": "import lib\nlib.other\n"}


def test_a_fix_over_several_files_is_made_in_all_of_them() -> None:
    outcomes = outcomes_of([rename("old", lambda _: "new")], FILES)
    assert texts(outcomes) == {"a.py": "import lib\nlib.new\n", "b.py": "import lib\nx = lib.new\n", "c.py": None}
    assert told(outcomes) == [("a.py", 2, "safe", "rename old", True)]
    assert outcomes["a.py"].transactions == outcomes["b.py"].transactions == (0,)
    assert outcomes["c.py"].transactions == ()


def test_where_a_guard_fails_in_one_file_the_fix_is_taken_back_in_all_and_other_fixes_stay() -> None:
    files = {**FILES, "a.py": FILES["a.py"] + "lib.alone\n", "c.py": FILES["c.py"] + "lib.alone\n"}
    breaking = rename("old", lambda module: "new +" if module.path == "b.py" else "new")
    outcomes = outcomes_of([breaking, single], files)
    assert texts(outcomes) == {
        "a.py": "import lib\nlib.old\nlib.single\n",
        "b.py": None,
        "c.py": "import lib\nlib.other\nlib.single\n",
    }
    assert [(o.path, o.status) for o in outcomes.values() if o.status is not Status.OK] == [("b.py", Status.FAILED)]
    assert outcomes["b.py"].reason.startswith("left as it was: the new text is no longer Python")
    assert ("a.py", 2, "safe", "rename old", False) in told(outcomes)


def test_a_file_that_fails_for_another_reason_takes_the_fix_back_as_well() -> None:
    @transform(module=True, names=("old",), since="1.0")
    def raising(module: Any) -> Iterator[Finding]:
        if module.path == "b.py":
            raise ValueError("no")
        yield from ()

    outcomes = outcomes_of([rename("old", lambda _: "new"), replace(raising, name="raising")], FILES)
    assert set(texts(outcomes).values()) == {None}
    assert "transform raising raised ValueError" in outcomes["b.py"].reason


def test_transactions_that_share_files_are_all_made_and_a_broken_one_leaves_the_others() -> None:
    files = {
        "a.py": "import lib\nlib.one\nlib.two; lib.three\n",
        "b.py": "import lib\nlib.three\nlib.one\n",
        "c.py": "import lib\nlib.two\n",
    }
    transforms = [
        rename("one", lambda _: "longer_one", "first"),
        rename("two", lambda module: "2 2" if module.path == "c.py" else "longer_two", "second"),
        rename("three", lambda _: "3".replace("3", "t"), "third"),
    ]
    outcomes = outcomes_of(transforms, files)
    assert texts(outcomes) == {
        "a.py": "import lib\nlib.longer_one\nlib.two; lib.t\n",
        "b.py": "import lib\nlib.t\nlib.longer_one\n",
        "c.py": None,
    }
    assert outcomes["a.py"].transactions == outcomes["b.py"].transactions == (0, 2)


def test_fixes_that_exclude_each_other_take_turns() -> None:
    transforms = [rename("old", lambda _: "mid", "first"), rename("old", lambda _: "other", "second")]
    outcomes = outcomes_of(transforms, FILES)
    assert texts(outcomes)["a.py"] == "import lib\nlib.mid\n"
    assert [line[-2:] for line in told(outcomes)] == [("rename old", True)]


def test_a_further_round_sees_what_the_earlier_ones_made_and_tells_places_as_the_files_were_read() -> None:
    files = {"a.py": "import lib\n\nlib.old\nlib.alone; lib.old\n", "b.py": "import lib\nlib.mid\n"}
    transforms = [rename("old", lambda _: "a_much_longer_mid", "x"), rename("a_much_longer_mid", lambda _: "mid", "y")]
    outcomes = outcomes_of([*transforms, rename("mid", lambda _: "final", "z"), single], files)
    assert texts(outcomes) == {
        "a.py": "import lib\n\nlib.final\nlib.single; lib.final\n",
        "b.py": "import lib\nlib.final\n",
    }
    assert told(outcomes) == [
        ("a.py", 3, "safe", "rename old", True),
        ("a.py", 3, "safe", "rename a_much_longer_mid", True),
        ("a.py", 3, "safe", "rename mid", True),
        ("a.py", 4, "safe", "say single", True),
        ("b.py", 2, "safe", "rename mid", True),
    ]
    for path, outcome in outcomes.items():
        text = files[path]
        for edit in reversed(outcome.edits):
            text = text[: edit.start] + edit.text + text[edit.end :]
        assert text.encode() == outcome.new
        assert outcome.old == files[path].encode()


def test_edits_in_other_files_are_told_as_those_files_were_read() -> None:
    files = {"a.py": "import lib\nlib.old\n", "b.py": "import lib\nlib.old; lib.mid\n"}
    transforms = [rename("old", lambda _: "renamed", "x"), rename("mid", lambda _: "final", "y")]
    late = replace(transforms[1], function=lambda files: (f for f in transforms[1].function(files) if renamed(files)))

    def renamed(files: ProjectFiles) -> bool:
        return not occurrences(files, "old")

    outcomes = outcomes_of([transforms[0], late], files)
    second = next(f for f in outcomes["b.py"].findings if f.message == "rename mid")
    assert second.fix == Fix((Edit(24, 27, "final", "b.py"),))
    assert files["b.py"][24:27] == "mid"


def test_fixes_without_an_end_are_left_out_and_named() -> None:
    files = {**FILES, "c.py": "import lib\nlib.alone\n"}
    outcomes = outcomes_of([rename("old", lambda _: "old.old"), single], files)
    assert texts(outcomes) == {"a.py": None, "b.py": None, "c.py": "import lib\nlib.single\n", ".": None}
    assert outcomes["."].status is Status.FAILED
    assert outcomes["."].reason == "fixes over several files were left out: they never come to an end (rename)"
    assert told(outcomes) == [("a.py", 2, "safe", "rename old", False), ("c.py", 2, "safe", "say single", True)]


def test_as_many_rounds_as_there_are_may_be_needed() -> None:
    steps = [f"step{number}" for number in range(MAX_ROUNDS + 1)]
    transforms = [rename(a, lambda _, b=b: b, a) for a, b in itertools.pairwise(steps)]
    outcomes = outcomes_of(transforms, {"a.py": "import lib\nlib.step0\n", "b.py": "import lib\nlib.step0\n"})
    assert texts(outcomes) == dict.fromkeys(("a.py", "b.py"), f"import lib\nlib.step{MAX_ROUNDS}\n")


def test_checking_changes_nothing_and_tells_the_edits_only_when_they_are_wanted() -> None:
    for build in (False, True):
        outcomes = outcomes_of([rename("old", lambda _: "new"), single], FILES, apply=False, build=build)
        assert set(texts(outcomes).values()) == {None}
        assert told(outcomes) == [("a.py", 2, "safe", "rename old", False)]
        assert (outcomes["a.py"].findings[0].fix is not None) is build
        assert outcomes["a.py"].findings[0].build is None  # it goes from process to process


def test_levels_that_are_not_wanted_are_left() -> None:
    outcomes = outcomes_of([rename("old", lambda _: "new")], FILES, levels=frozenset())
    assert set(texts(outcomes).values()) == {None}
    assert told(outcomes) == [("a.py", 2, "safe", "rename old", False)]


def test_a_target_that_is_older_than_the_new_form_leaves_a_note() -> None:
    outcomes = outcomes_of([rename("old", lambda _: "new")], FILES, versions=Versions(target=(0, 4, 0)))
    assert set(texts(outcomes).values()) == {None}
    assert told(outcomes) == [("a.py", 2, "note", "the new form needs torch 1.0, the target is 0.4", False)]


def test_a_suppression_silences_the_whole_fix() -> None:
    files = {**FILES, "a.py": "import lib\nlib.old  # torchmod: ignore[rename]\n"}
    outcomes = outcomes_of([rename("old", lambda _: "new")], files)
    assert set(texts(outcomes).values()) == {None}
    assert told(outcomes) == []


def test_a_refusal_becomes_a_note() -> None:
    @transform(project=True, names=("old",), since="1.0")
    def refusing(files: ProjectFiles) -> Iterator[Finding]:
        def build() -> Fix:
            raise Refused("it cannot be seen")

        module, span = occurrences(files, "old")[0]
        yield module.safe_fix("rename", build, at=span)

    assert told(outcomes_of([refusing], FILES)) == [("a.py", 2, "note", "it cannot be seen", False)]


@pytest.mark.parametrize("when", ["looking", "building"])
def test_a_transform_that_raises_is_named_once_and_the_others_go_on(when: str) -> None:
    @transform(project=True, names=("old",), since="1.0")
    def raising(files: ProjectFiles) -> Iterator[Finding]:
        def build() -> Fix:
            raise ValueError("no build")

        module, span = occurrences(files, "import" if when == "looking" else "lib")[0]
        yield module.safe_fix("rename", build, at=span)

    outcomes = outcomes_of([replace(raising, name="raising"), rename("old", lambda _: "new"), single], FILES)
    failed = [outcome for outcome in outcomes.values() if outcome.status is Status.FAILED]
    error = "IndexError at test_rounds.py" if when == "looking" else "ValueError at test_rounds.py"
    assert [outcome.path for outcome in failed] == ["."]
    assert failed[0].reason.startswith(f"transform raising raised {error}")
    assert texts(outcomes)["b.py"] == "import lib\nx = lib.new\n"


# what fixes need


def test_what_fixes_need_is_written_once_in_the_file_of_the_finding() -> None:
    needs = (Need("import torch"),)
    files = {"a.py": "import lib\none\ntwo\n", "b.py": "two\none\n"}
    transforms = [
        rename("one", lambda module: "torch.ones" if module.path == "a.py" else "1", "first", needs=needs),
        rename("two", lambda module: "torch.twos" if module.path == "a.py" else "2", "second", needs=needs),
    ]
    outcomes = outcomes_of(transforms, files)
    assert texts(outcomes) == {"a.py": "import lib\nimport torch\ntorch.ones\ntorch.twos\n", "b.py": "2\n1\n"}


def test_what_only_a_broken_fix_needs_is_not_written() -> None:
    files = {"a.py": "import lib\none\nlib.two\n", "b.py": "one\n", "c.py": "import lib\nlib.two\n"}
    transforms = [
        rename("one", lambda m: "torch.ones" if m.path == "a.py" else "1 1", "first", needs=(Need("import torch"),)),
        rename("two", lambda _: "new", "second"),
    ]
    outcomes = outcomes_of(transforms, files)
    assert texts(outcomes) == {"a.py": "import lib\none\nlib.new\n", "b.py": None, "c.py": "import lib\nlib.new\n"}


def test_a_fix_whose_needs_have_no_place_is_left() -> None:
    needs = (Need("import torch", before=len("import lib; ")),)
    files = {"a.py": "import lib; lib.old\n", "b.py": "import lib\nlib.old\n"}
    outcomes = outcomes_of([rename("old", lambda _: "new", needs=needs)], files)
    assert texts(outcomes) == {"a.py": None, "b.py": None}
    assert told(outcomes) == [("a.py", 1, "safe", "rename old", False)]


# odd files


def test_files_that_cannot_be_read_are_named_and_hold_nothing_up() -> None:
    whole = {"bad.py": "import lib\nlib.old = = 1\n", **FILES}
    outcomes = outcomes_of([rename("old", lambda _: "new")], whole)
    assert outcomes["bad.py"].status is Status.UNREADABLE
    assert texts(outcomes)["a.py"] == "import lib\nlib.new\n"
    plan = Plan((rename("old", lambda _: "new"),), frozenset(), SAFE, apply=True)
    jobs = [Job("null.py", b"old\0"), Job("run.sh", b"lib.old\n", is_python=False), Job("a.py", b"lib.old\n")]
    found = run_rounds(plan, jobs, lambda some: [Engine(plan).run(job) for job in some])
    assert [(o.path, o.status) for o in found] == [
        ("null.py", Status.UNREADABLE),
        ("run.sh", Status.OK),
        ("a.py", Status.OK),
    ]


def test_encodings_and_line_ends_are_kept_in_every_file() -> None:
    plan = Plan((rename("old", lambda _: "new"),), frozenset(), SAFE, apply=True)
    data = {
        "a.py": b"\xef\xbb\xbfimport lib\r\nlib.old\r\n",
        "b.py": b"# coding: latin-1\n# \xe9\nimport lib\nlib.old  # \xff",
    }
    found = run_rounds(plan, [Job(*item) for item in data.items()], lambda some: [Engine(plan).run(j) for j in some])
    assert {o.path: o.new for o in found} == {path: text.replace(b"old", b"new") for path, text in data.items()}


def test_without_project_transforms_the_files_are_run_once_and_as_they_are() -> None:
    asked: list[Sequence[Job]] = []

    def run(jobs: Sequence[Job]) -> list[Outcome]:
        asked.append(jobs)
        return [Outcome(job.path) for job in jobs]

    jobs = [Job("b.py", b""), Job("a.py", b"")]
    assert run_rounds(Plan((single,), frozenset(), SAFE), jobs, run) == [Outcome("b.py"), Outcome("a.py")]
    assert asked == [jobs]


def test_neighbours_are_read_from_the_snapshot_and_not_from_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    @transform(project=True, names=("old",), since="1.0")
    def asking(files: ProjectFiles) -> Iterator[Finding]:
        for module in files.modules:
            node = next(n for n in ast.walk(module.tree) if isinstance(n, ast.Name) and n.id == "thing")
            seen.append(sorted(module.names.resolve(node).names))
        yield from ()

    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.py").write_text("from other import thing\n", encoding="utf-8")
    outcomes_of(
        [asking], {"here.py": "from there import thing\nthing\n", "there.py": "from torch import thing\nthing\n"}
    )
    assert seen == [["torch.thing"], ["torch.thing"]]
