"""The golden cases: `golden/<transform>/<case>/`, by the prefix of the case's name.

rewrites_*: before.py becomes after.py. keeps_*: nothing is edited. reports_*: nothing is edited, findings.txt says why.
Every case is also run again on its result, with other line ends, with a BOM, without its last line end, among all
transforms, and silenced by a comment.
"""

import ast
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from torchmod.edits import apply
from torchmod.engine import Engine, Job, Plan
from torchmod.model import Applicability, Outcome, Status
from torchmod.prefilter import Prefilter
from torchmod.registry import Transform, discover
from torchmod.settings import Settings

ROOT = Path(__file__).parent.parent / "golden"
SAMPLE = "sample"
TRANSFORMS = discover()
SHAPES = {
    "rewrites": ({"before.py", "after.py", "findings.txt"}, {"case.toml", "setup.py"}),
    "keeps": ({"before.py"}, {"case.toml", "setup.py", "findings.txt"}),
    "reports": ({"before.py", "findings.txt"}, {"case.toml", "setup.py"}),
}
CASE_KEYS = {"unsafe", "target", "written-for", "watch", "wants", "legacy", "devices", "cannot-run", "wrong-raises"}
MAX_LINES = 40


@dataclass(frozen=True)
class Case:
    folder: Path

    @property
    def kind(self) -> str:
        return self.folder.name.partition("_")[0]

    @property
    def transform(self) -> Transform:
        return TRANSFORMS[self.folder.parent.name.replace("_", "-")]

    @cached_property
    def options(self) -> dict[str, Any]:
        path = self.folder / "case.toml"
        return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def bytes_of(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()

    @property
    def before(self) -> bytes:
        return self.bytes_of("before.py")

    @property
    def after(self) -> bytes:
        return self.bytes_of("after.py") if self.kind == "rewrites" else self.before

    def run(self, data: bytes, *, everything: bool = False, only_find: bool = False) -> Outcome:
        names = {"unsafe": "unsafe", "target": "target", "written-for": "written_for"}
        settings = Settings(**{field: self.options[key] for key, field in names.items() if key in self.options})
        chosen = tuple(TRANSFORMS.values()) if everything else (self.transform,)
        plan = Plan(chosen, frozenset(TRANSFORMS), settings.levels, settings.versions, apply=not only_find, build=True)
        return Engine(plan).run(Job(str(self.folder / "before.py"), data))

    def result(self, data: bytes, **how: bool) -> bytes:
        outcome = self.run(data, **how)
        assert outcome.status is Status.OK, outcome.reason
        return outcome.new if outcome.new is not None else data

    def findings(self) -> str:
        found = self.run(self.before, only_find=True).findings
        return "".join(
            f"{f.place.line}:{f.place.column} {f.transform} {f.applicability} {f.message}\n" for f in found if f.place
        )


CASES = [Case(path) for path in sorted(ROOT.glob("*/*")) if path.parent.name != SAMPLE and path.is_dir()]


def name_of(case: Case) -> str:
    return f"{case.folder.parent.name}/{case.folder.name}"


each_case = pytest.mark.parametrize("case", CASES, ids=name_of)


def other_line_ends(data: bytes, end: bytes) -> bytes:
    return data.replace(b"\n", end)


@pytest.mark.parametrize("name", sorted(TRANSFORMS))
def test_every_transform_has_cases_of_each_kind(name: str) -> None:
    kinds = {case.kind for case in CASES if case.transform.name == name}
    assert kinds >= set(SHAPES), f"{name} has no golden case that {' or '.join(set(SHAPES) - kinds)}"


def test_every_golden_folder_belongs_to_a_transform() -> None:
    folders = {path.name.replace("_", "-") for path in ROOT.iterdir() if path.is_dir()} - {SAMPLE}
    assert folders <= set(TRANSFORMS)


@each_case
def test_shape(case: Case) -> None:
    assert case.kind in SHAPES, f"a case is called {' or '.join(f'{kind}_…' for kind in SHAPES)}"
    needed, allowed = SHAPES[case.kind]
    files = {path.name for path in case.folder.iterdir()}
    wrong = {name for name in files if name.startswith("wrong_") and name.endswith(".py")}
    assert needed <= files
    assert files - wrong <= needed | allowed
    assert not wrong or case.kind == "rewrites", "only what is rewritten can be rewritten wrongly"
    assert wrong or case.kind != "rewrites" or "cannot-run" in case.options, "it has no wrong_<what>.py"
    assert set(case.options) <= CASE_KEYS
    assert case.before.count(b"\n") <= MAX_LINES, "one idea a case"


@each_case
def test_text(case: Case, request: pytest.FixtureRequest) -> None:
    outcome = case.run(case.before)
    assert outcome.status is Status.OK, outcome.reason
    result = outcome.new if outcome.new is not None else case.before
    if request.config.getoption("--update-golden"):
        if case.kind == "rewrites":
            (case.folder / "after.py").write_bytes(result)
        if case.kind != "keeps" or (case.folder / "findings.txt").exists():
            (case.folder / "findings.txt").write_text(case.findings(), encoding="utf-8")
    assert result == case.after
    assert (case.kind == "rewrites") == (result != case.before), "noisy or missing"


@each_case
def test_findings(case: Case) -> None:
    expected = case.folder / "findings.txt"
    found = case.findings()
    if expected.exists():
        assert found == expected.read_text(encoding="utf-8")
        assert found, "a case that lists findings has some"
    else:
        applicable = {str(a) for a in Applicability} - {"note"}
        assert not [line for line in found.splitlines() if line.split()[2] in applicable], found


@each_case
def test_the_result_parses_and_a_rerun_changes_nothing(case: Case) -> None:
    ast.parse(case.after)
    assert case.result(case.after) == case.after


@each_case
def test_text_outside_the_edits_is_untouched(case: Case) -> None:
    edits = case.run(case.before).edits
    assert apply(case.before.decode(), edits).encode() == case.after
    assert all(edit.text != case.before.decode()[edit.start : edit.end] for edit in edits)


@each_case
@pytest.mark.parametrize("end", [b"\r\n", b"\r"], ids=["CRLF", "CR"])
def test_other_line_ends(case: Case, end: bytes) -> None:
    assert case.result(other_line_ends(case.before, end)) == other_line_ends(case.after, end)


@each_case
def test_with_a_byte_order_mark(case: Case) -> None:
    bom = b"\xef\xbb\xbf"
    assert case.result(bom + case.before) == bom + case.after


@each_case
def test_without_the_last_line_end(case: Case) -> None:
    assert case.result(case.before.removesuffix(b"\n")) == case.after.removesuffix(b"\n")


@each_case
def test_the_same_among_all_transforms(case: Case) -> None:
    assert case.result(case.before, everything=True) == case.after


def can_be_indented(case: Case) -> bool:
    """Not where a string over several lines, a star import or a module-level name would mean something else."""
    return not any(text in case.before for text in (b'"""', b"import *", b"\\\n", b"global ", b"globals()"))


def indented(data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    return b"def main():\n" + b"".join(b"    " * bool(line.strip()) + line for line in lines)


@pytest.mark.parametrize("case", list(filter(can_be_indented, CASES)), ids=name_of)
def test_inside_a_function_the_result_is_the_same_but_indented(case: Case) -> None:
    assert case.result(indented(case.before)) == indented(case.after)


@each_case
def test_an_ignored_file_is_left(case: Case) -> None:
    silenced = f"# torchmod: ignore-file[{case.transform.name}]\n".encode() + case.before
    assert case.result(silenced) == silenced


@pytest.mark.parametrize("case", [case for case in CASES if (case.folder / "findings.txt").exists()], ids=name_of)
def test_the_prefilter_lets_it_through(case: Case) -> None:
    assert Prefilter([case.transform.row]).wants(case.before)


@pytest.mark.parametrize("case", [case for case in CASES if any(case.folder.glob("wrong_*.py"))], ids=name_of)
def test_wrong_rewrites_are_other_programs(case: Case) -> None:
    for path in case.folder.glob("wrong_*.py"):
        wrong = ast.dump(ast.parse(path.read_bytes()))
        assert wrong not in (ast.dump(ast.parse(case.before)), ast.dump(ast.parse(case.after))), path.name
