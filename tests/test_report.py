"""What a run tells: to a person, as a diff, as JSON, to GitHub."""

import io
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from torchmod import __version__
from torchmod.model import Applicability, Edit, Finding, Fix, Outcome, Place, Span, Status
from torchmod.report import text
from torchmod.report.diff import diff
from torchmod.report.machine import as_github, as_json
from torchmod.report.progress import Bar
from torchmod.report.view import View, paint, wants_colour
from torchmod.runner import Run

CHECK, DIFF, FIX = View("check"), View("diff"), View("fix")
SAFE, UNSAFE, DISPLAY, NOTE = Applicability


def finding(level: Applicability = SAFE, path: str = "a.py", line: int = 3, **more: Any) -> Finding:
    values = {"message": "replace `a` by `b`", "evidence": ("it is so",), "place": Place(line, 5, line, 8), **more}
    return Finding("house-rule", level, span=Span(10, 13), path=path, **values)


def run_of(*outcomes: Outcome, checked: int = 1) -> Run:
    return Run(list(outcomes), checked)


def changed(path: str, old: bytes, new: bytes) -> Outcome:
    return Outcome(path, old=old, new=new)


# text


def test_a_finding_is_one_line_with_its_place_its_transform_its_level_and_what_it_would_do() -> None:
    run = run_of(Outcome("a.py", findings=(finding(), finding(UNSAFE, line=4), finding(DISPLAY, line=5))))
    assert text.findings(run, CHECK).splitlines() == [
        "a.py:3:5: house-rule [safe] replace `a` by `b`",
        "a.py:4:5: house-rule [unsafe] replace `a` by `b`",
        "a.py:5:5: house-rule [display] replace `a` by `b`",
    ]


def test_notes_and_evidence_are_for_those_who_ask() -> None:
    run = run_of(Outcome("a.py", findings=(finding(NOTE),)))
    assert text.findings(run, CHECK) == ""
    assert text.findings(run, View("check", verbose=True)).splitlines() == [
        "a.py:3:5: house-rule [note] replace `a` by `b`",
        "    because it is so",
    ]


def test_what_was_fixed_is_not_listed() -> None:
    assert text.findings(run_of(Outcome("a.py", findings=(finding(fixed=True),))), FIX) == ""


@pytest.mark.parametrize(
    ("levels", "told"),
    [
        ([], "nothing to do"),
        (
            [SAFE] * 12 + [UNSAFE] * 3 + [NOTE] * 40,
            "12 fixable with `torchmod fix`, 3 more with `--unsafe`, 40 notes (-v)",
        ),
        ([UNSAFE, NOTE], "1 with `--unsafe`, 1 note (-v)"),
        ([DISPLAY] * 2, "2 to do by hand"),
    ],
)
def test_the_summary_counts_what_can_be_done_and_how(levels: list[Applicability], told: str) -> None:
    run = run_of(Outcome("a.py", findings=tuple(finding(level) for level in levels)))
    assert text.summary(run, CHECK).splitlines()[0] == told


def test_the_summary_says_what_was_done_and_what_became_of_the_files() -> None:
    run = run_of(
        Outcome("a.py", findings=(finding(fixed=True), finding(fixed=True)), old=b"a", new=b"b"),
        Outcome("b.py", Status.SKIPPED, "why"),
        Outcome("c.py", Status.UNREADABLE, "why"),
        Outcome("d.py", Status.FAILED, "why"),
        checked=4,
    )
    left_out = "4 files checked, 1 left out (-v), 1 unreadable, 1 failed\n"
    assert text.summary(run, FIX) == f"2 findings fixed in 1 file\n{left_out}"
    assert text.summary(run, DIFF).startswith("2 findings would be fixed in 1 file\n")


def test_reasons_for_notes_are_counted_the_most_frequent_first() -> None:
    notes = [finding(NOTE, message=f"why {n}") for n in range(20) for _ in range(n + 1)]
    lines = text.summary(run_of(Outcome("a.py", findings=tuple(notes))), View("check", verbose=True)).splitlines()
    assert lines[1] == "left alone:"
    assert lines[2] == "    20  house-rule: why 19"
    assert lines[16] == "     6  house-rule: why 5"
    assert lines[17] == "    15  for other reasons"
    assert "210 notes" in lines


def test_problems_are_named_and_what_was_left_out_only_for_those_who_ask() -> None:
    run = run_of(
        Outcome("b.py", Status.SKIPPED, "a symbolic link"),
        Outcome("c.py", Status.UNREADABLE, "line 1: no"),
        Outcome("d.py", Status.FAILED, "left as it was"),
        Outcome("e.py"),
    )
    assert text.problems(run, CHECK) == "cannot look at c.py: line 1: no\nfailed d.py: left as it was\n"
    assert text.problems(run, View("check", verbose=True)).startswith("skipped b.py: a symbolic link\n")


def test_colours_are_added_and_change_no_letter() -> None:
    run = run_of(Outcome("a.py", findings=tuple(finding(level) for level in Applicability)))
    plain, painted = (text.findings(run, View("check", verbose=True, colour=colour)) for colour in (False, True))
    assert "\033[" in painted
    assert "\033[" not in plain
    assert re.sub(r"\033\[\d+m", "", painted) == plain
    assert paint("", "red", colour=True) == ""


@pytest.mark.parametrize(
    ("environment", "terminal", "wanted"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, True, False),
    ],
)
def test_colours_are_for_terminals_unless_the_environment_says_otherwise(
    environment: dict[str, str], terminal: bool, wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    class Stream(io.StringIO):
        def isatty(self) -> bool:
            return terminal

    assert wants_colour(Stream()) is wanted


# diff


def tree(folder: Path, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def read_tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


OLD_LINES = [b"import torch", b"", *(b"x%d = 1" % n for n in range(30)), b"loss = old()", b"end"]
OLD_TEXT = b"\n".join(OLD_LINES) + b"\n"
CASES = {
    "plain.py": OLD_TEXT,
    "crlf.py": OLD_TEXT.replace(b"\n", b"\r\n"),
    "no_end.py": OLD_TEXT[:-1],
    "no_end_at_the_edit.py": b"x = 1\nloss = old()",
    "one_line.py": b"loss = old()\n",
    "latin.py": b"# caf\xe9 \xff\n" + OLD_TEXT,
    "lone_cr.py": OLD_TEXT.replace(b"\n", b"\r"),
    "form_feed.py": b"\x0c\n\x0b\x1c\xc2\x85\n" + OLD_TEXT,
    "bom.py": b"\xef\xbb\xbf" + OLD_TEXT,
    "a folder/with blank.py": OLD_TEXT,
    " blank first.py": OLD_TEXT,
    "ünïcödé/漢.py": OLD_TEXT,
    'quo"te.py': OLD_TEXT,
    "back\\slash.py": OLD_TEXT,
    "ta\tb.py": OLD_TEXT,
    "li\nne.py": OLD_TEXT,
    os.fsdecode(b"caf\xe9.py"): OLD_TEXT,
    "-dash.py": OLD_TEXT,
}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
@pytest.mark.parametrize("command", [["git", "apply"], ["patch", "-p1", "--binary"], ["patch", "-p1"]], ids=" ".join)
@pytest.mark.parametrize("name", CASES, ids=ascii)
def test_git_and_patch_take_the_diff(name: str, command: list[str], tmp_path: Path) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not there to ask")
    new = CASES[name].replace(b"old()", b"new(1)")
    tree(tmp_path, {name: CASES[name]})
    body = diff(run_of(changed(name, CASES[name], new)))
    done = subprocess.run(command, cwd=tmp_path, input=body, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    assert read_tree(tmp_path) == {name: new}


def test_a_diff_has_the_files_in_order_and_nothing_of_those_that_stay() -> None:
    run = run_of(changed("b.py", b"1\n", b"2\n"), Outcome("c.py"), changed("a.py", b"3\n", b"4\n"))
    assert diff(run).decode().splitlines() == [
        *("--- a/b.py", "+++ b/b.py", "@@ -1 +1 @@", "-1", "+2"),
        *("--- a/a.py", "+++ b/a.py", "@@ -1 +1 @@", "-3", "+4"),
    ]
    assert diff(run_of(Outcome("c.py"))) == b""


def test_a_coloured_diff_is_the_plain_one_with_colours() -> None:
    run = run_of(changed("a b.py", b"x\n1\n", b"x\n2"))
    painted = diff(run, colour=True)
    assert re.sub(rb"\033\[\d+m", b"", painted) == diff(run)
    assert b"\033[32m+2\033[0m" in painted
    assert b"\033[31m-1\033[0m" in painted


# JSON


def test_json_has_exactly_the_fields_of_the_contract() -> None:
    fix = Fix((Edit(10, 13, "b"), Edit(0, 0, "import b\n", path="b.py")))
    placed = finding(UNSAFE, place=Place(2, 5, 3, 1), fix=fix, fixed=True)
    run = run_of(
        Outcome("a.py", findings=(placed,), old=b"a", new=b"b"),
        Outcome("c.py", Status.SKIPPED, "a symbolic link"),
        Outcome("d.py", Status.UNREADABLE, "no permission"),
        Outcome("e.py", Status.FAILED, "left as it was"),
        checked=3,
    )
    assert json.loads(as_json(run)) == {
        "version": 1,
        "torchmod": __version__,
        "findings": [
            {
                "path": "a.py",
                "line": 2,
                "column": 5,
                "end_line": 3,
                "end_column": 1,
                "cell": None,
                "transform": "house-rule",
                "applicability": "unsafe",
                "message": "replace `a` by `b`",
                "evidence": ["it is so"],
                "fix": {
                    "edits": [
                        {"path": "a.py", "start": 10, "end": 13, "text": "b"},
                        {"path": "b.py", "start": 0, "end": 0, "text": "import b\n"},
                    ]
                },
                "fixed": True,
            }
        ],
        "files": {"checked": 3, "changed": 1, "skipped": 2, "failed": 1},
        "problems": [
            {"path": "c.py", "kind": "skipped", "reason": "a symbolic link"},
            {"path": "d.py", "kind": "skipped", "reason": "no permission"},
            {"path": "e.py", "kind": "failed", "reason": "left as it was"},
        ],
    }


def test_json_of_nothing_is_one_object_too_and_notes_have_no_fix() -> None:
    empty = json.loads(as_json(run_of(checked=0)))
    assert (empty["findings"], empty["problems"], empty["files"]["checked"]) == ([], [], 0)
    note = finding(NOTE, fix=Fix((Edit(0, 1, ""),)))
    assert json.loads(as_json(run_of(Outcome("a.py", findings=(note,)))))["findings"][0]["fix"] is None


def test_json_is_plain_ascii_whatever_names_and_texts_hold() -> None:
    name = os.fsdecode(b"caf\xe9/\xe6\xbc\xa2.py")
    odd = finding(path=name, message='a "quote"\n\u6f22 \ud800')
    body = as_json(run_of(Outcome(name, findings=(odd,))))
    assert body.isascii()
    told = json.loads(body)["findings"][0]
    assert (told["path"], told["message"]) == (name, odd.message)


# GitHub


def test_github_gets_an_annotation_for_each_finding_and_problem() -> None:
    run = run_of(
        Outcome(
            "a,b:c.py", findings=(finding(path="a,b:c.py", message="50% of\nthat"), finding(NOTE), finding(fixed=True))
        ),
        Outcome("d.py", Status.FAILED, "left as it was"),
        Outcome("e.py", Status.SKIPPED, "why"),
        Outcome("f.py", findings=(finding(UNSAFE, path="f.py", place=Place(1, 2, 3, 4)),)),
    )
    assert as_github(run, CHECK).splitlines() == [
        "::warning file=a%2Cb%3Ac.py,line=3,endLine=3,col=5,endColumn=8,title=house-rule::50%25 of%0Athat [safe]",
        "::error file=d.py,title=torchmod::left as it was",
        "::warning file=f.py,line=1,endLine=3,title=house-rule::replace `a` by `b` [unsafe]",
    ]
    assert "::notice file=a.py,line=3" in as_github(run, View("check", verbose=True))


# progress


def test_the_bar_shows_nothing_while_the_work_is_short(capsys: pytest.CaptureFixture[str]) -> None:
    bar = Bar(60)
    bar.show(1, 2)
    bar.stop()
    assert capsys.readouterr() == ("", "")


def test_the_bar_shows_how_far_it_is_on_standard_error_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then takes it for a terminal
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    bar = Bar(0)
    bar.show(1, 3)
    bar.show(3, 3)
    bar.stop()
    out, err = capsys.readouterr()
    assert out == ""
    assert "3/3" in err
