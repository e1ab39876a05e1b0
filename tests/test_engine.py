"""One file through the engine, with small transforms made for the purpose."""

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from torchmod.edits import apply
from torchmod.engine import Engine, Job, Plan
from torchmod.knowledge.signature import Signature
from torchmod.model import Applicability, Edit, Finding, Fix, Need, Outcome, Refused, Span, Status
from torchmod.registry import Transform, transform
from torchmod.subjects import Document, Module, Versions

ALL = frozenset([Applicability.SAFE, Applicability.UNSAFE])
OLD = {"torch.old": Signature(("input", "flag", "other"))}


def made(name: str, function: Callable[..., Iterator[Finding]], **declared: Any) -> Transform:
    return replace(transform(since="1.0", **declared)(function), name=name)


def run(text: str | bytes, *transforms: Transform, path: str = "x.py", **plan: Any) -> Outcome:
    known = frozenset(one.name for one in transforms)
    settings = {"levels": frozenset([Applicability.SAFE]), "apply": True, "build": True, **plan}
    data = text if isinstance(text, bytes) else text.encode()
    return Engine(Plan(transforms, known, **settings)).run(Job(path, data, path.endswith(".py")))


def new_text(outcome: Outcome) -> str:
    assert outcome.status is Status.OK, outcome.reason
    assert outcome.new is not None, "nothing was changed"
    return outcome.new.decode()


def replacing(words: Mapping[str, str], level: str = "safe_fix") -> Callable[[Module], Iterator[Finding]]:
    """A whole-file function that replaces names, one finding a name."""

    def function(module: Module) -> Iterator[Finding]:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Name) and node.id in words:
                span = module.source.span(node)
                fix = Fix((Edit(span.start, span.end, words[node.id]),))
                yield getattr(module, level)(f"{node.id} to {words[node.id]}", fix, at=span)

    return function


def rename(name: str, words: Mapping[str, str], level: str = "safe_fix") -> Transform:
    return made(name, replacing(words, level), module=True)


def test_a_safe_fix_is_applied_and_an_unsafe_one_only_when_asked() -> None:
    one = rename("one", {"a": "b"}, "unsafe_fix")
    assert run("a = b = 1\na\n", one).new is None
    assert new_text(run("b = 1\na = 2\na\n", one, levels=ALL)) == "b = 1\nb = 2\nb\n"


def test_a_fix_to_display_is_never_applied_but_its_edits_are_told() -> None:
    outcome = run("b = a = 1\n", rename("one", {"a": "b"}, "display_fix"), levels=ALL)
    assert outcome.new is None
    assert [(f.fixed, f.fix) for f in outcome.findings] == [(False, Fix((Edit(4, 5, "b"),)))]


def test_fixes_that_exclude_each_other_take_turns() -> None:
    """One removes an argument, one rewrites what is in it: whoever comes second sees the other's result."""
    first = rename("first", {"a": "b"})
    second = made("second", brackets_removed, module=True)
    assert new_text(run("b = f = 1\nf((a))\n", first, second)) == "b = f = 1\nf(b)\n"


def brackets_removed(module: Module) -> Iterator[Finding]:
    at = module.source.text.find("((")
    end = module.source.text.find("))")
    if at >= 0:
        edit = Edit(at, end + 2, module.source.text[at + 1 : end + 1])
        yield module.safe_fix("one pair is enough", Fix((edit,)), at=edit.span)


def test_fixes_follow_each_other_until_nothing_is_left() -> None:
    outcome = run("a = b = c = d = 0\na\n", rename("one", {"a": "b", "b": "c", "c": "d"}))
    assert new_text(outcome) == "d = d = d = d = 0\nd\n"
    assert apply("a = b = c = d = 0\na\n", outcome.edits) == "d = d = d = d = 0\nd\n"
    assert all(f.fixed for f in outcome.findings)


def test_the_edits_of_all_fixed_findings_together_make_the_new_text() -> None:
    text = "a = b = c = 0\nprint(a, b)  # é\n"
    outcome = run(text, rename("one", {"a": "b", "b": "c"}))
    edits = {edit for f in outcome.findings if f.fixed and f.fix for edit in f.fix.edits}
    assert apply(text, sorted(edits)) == new_text(outcome)


def test_a_finding_of_a_later_pass_is_placed_in_the_file_as_it_was_read() -> None:
    text = "c = a = 0\n\n\nprint(a)\n"
    outcome = run(text, rename("one", {"a": "bbb", "bbb": "c"}))
    places = {(f.message, f.place.line, f.place.column) for f in outcome.findings if f.place}
    assert ("bbb to c", 4, 7) in places
    assert ("a to bbb", 4, 7) in places


def test_fixes_that_never_come_to_an_end_leave_the_file() -> None:
    outcome = run("a = b = 1\na\n", rename("one", {"a": "b", "b": "a"}))
    assert outcome.status is Status.FAILED
    assert "never come to an end (one)" in outcome.reason
    assert outcome.new is None


def test_a_transform_that_raises_is_named_with_the_place() -> None:
    def broken(module: Module) -> Iterator[Finding]:
        yield module.report("so far")
        raise ZeroDivisionError("by hand")

    outcome = run("x = 1\n", made("broken", broken, module=True))
    assert outcome.status is Status.FAILED
    assert "transform broken raised ZeroDivisionError at test_engine.py:" in outcome.reason
    assert outcome.findings == ()


def test_a_fix_that_raises_is_named_too() -> None:
    def build() -> Fix:
        raise KeyError("lost")

    def function(module: Module) -> Iterator[Finding]:
        yield module.safe_fix("will fail", build)

    assert "transform late raised KeyError" in run("x = 1\n", made("late", function, module=True)).reason


def test_a_refusal_is_a_note_when_found_and_when_built() -> None:
    def at_once(module: Module) -> Iterator[Finding]:
        raise Refused("not here")
        yield

    def build() -> Fix:
        raise Refused("not like this")

    def later(module: Module) -> Iterator[Finding]:
        yield module.safe_fix("do it", build)

    outcome = run("x = 1\n", made("at-once", at_once, module=True), made("later", later, module=True))
    assert [(f.applicability, f.message) for f in outcome.findings] == [
        (Applicability.NOTE, "not here"),
        (Applicability.NOTE, "not like this"),
    ]


def test_a_guard_that_fails_leaves_the_file_and_says_why() -> None:
    outcome = run("a = 1\n", rename("one", {"a": "1 +"}))
    assert outcome.status is Status.FAILED
    assert "no longer Python" in outcome.reason


def test_a_name_that_a_fix_uses_must_be_bound() -> None:
    function = with_need("x = 1", "a").function

    def without_need(module: Module) -> Iterator[Finding]:
        for finding in function(module):
            fix = replace(finding.build(), needs=()) if finding.build else Fix(())
            yield module.safe_fix("use the device", fix, at=finding.span)

    outcome = run("a = 1\nprint(a)\n", made("one", without_need, module=True))
    assert "line 2: the new text uses `device`, which is not defined" in outcome.reason


def with_need(code: str, name: str, *, is_import: bool = True) -> Transform:
    def function(module: Module) -> Iterator[Finding]:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
                span = module.source.span(node)
                fix = Fix((Edit(span.start, span.end, "device"),), (Need(code, None, is_import),))
                yield module.safe_fix("use the device", fix, at=span)

    return made(f"need-{name}", function, module=True)


def test_what_fixes_need_is_written_once_and_in_order() -> None:
    device = with_need("device = 'cpu'", "a", is_import=False)
    also = with_need("device = 'cpu'", "b", is_import=False)
    text = "import os\n\na = b = 1\nprint(a, b, a)\n"
    assert (
        new_text(run(text, device, also)) == "import os\ndevice = 'cpu'\n\na = b = 1\nprint(device, device, device)\n"
    )


def test_what_is_needed_again_in_a_later_pass_is_not_written_again() -> None:
    one = made("one", replacing({"c": "a"}), module=True)
    two = with_need("device = 1", "a", is_import=False)
    text = "a = c = 0\nprint(a)\nprint(c)\n"
    assert new_text(run(text, one, two)).count("device = 1\n") == 1


def test_a_document_is_shown_to_those_that_asked_for_its_name() -> None:
    def function(document: Document) -> Iterator[Finding]:
        yield document.report("seen")

    shell, text = made("shell", function, documents=("*.sh",)), made("text", function, documents=("*.txt",))
    assert [f.transform for f in run("x\n", shell, text, path="folder/a.sh").findings] == ["shell"]


def test_a_transform_that_gives_something_else_than_findings_is_named() -> None:
    def function(module: Module) -> Iterator[Any]:
        yield "a string"

    outcome = run("x = 1\n", made("odd", function, module=True))
    assert "transform odd raised TypeError" in outcome.reason
    assert "gives str, which is no finding" in outcome.reason


def test_what_no_accepted_fix_needs_is_not_written() -> None:
    quiet = run("a = 1\nprint(a)  # torchmod: ignore[need-a]\n", with_need("device = 1", "a", is_import=False))
    assert quiet.new is None


def test_import_name_reuses_an_alias_or_asks_for_the_import() -> None:
    def function(module: Module) -> Iterator[Finding]:
        for node in module.names.calls:
            if isinstance(node.func, ast.Name) and node.func.id == "old":
                name, needs = module.import_name("torch.new", node)
                span = module.source.span(node.func)
                yield module.safe_fix("rename", Fix((Edit(span.start, span.end, name),), needs), at=span)

    one = made("one", function, module=True)
    assert new_text(run("import torch as th\nold = 0\nold()\n", one)) == "import torch as th\nold = 0\nth.new()\n"
    assert new_text(run("import os\nold = 0\nold()\n", one)) == "import os\nimport torch\nold = 0\ntorch.new()\n"


def test_a_region_is_wrapped_in_with() -> None:
    def function(module: Module) -> Iterator[Finding]:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.For):
                edits, wrapper = module.wrap(node, node, "with open(path):")
                fix = Fix(edits, (), (wrapper,))
                if not isinstance(module.names.parents[node], ast.With):
                    yield module.safe_fix("wrap", fix, at=module.source.span(node))

    text = 'path = "."\nfor x in path:\n    y = """a\n  b"""\n    # c\n\n    print(y)\nz = 1\n'
    wrapped = (
        'path = "."\nwith open(path):\n    for x in path:\n        y = """a\n  b"""\n'
        "        # c\n\n        print(y)\nz = 1\n"
    )
    assert new_text(run(text, made("wrap", function, module=True))) == wrapped


def test_documents_that_are_not_python_are_edited_too() -> None:
    def function(document: Document) -> Iterator[Finding]:
        at = document.text.find("launch")
        if at >= 0:
            yield document.safe_fix("run", Fix((Edit(at, at + 6, "run"),)), at=Span(at, at + 6))

    one = made("shell", function, documents=("*.sh",))
    assert new_text(run("#!/bin/sh\r\nlaunch x\r\n", one, path="a.sh")) == "#!/bin/sh\r\nrun x\r\n"
    assert run("launch x  # torchmod: ignore[shell]\n", one, path="a.sh").new is None


def call_transform(**declared: Any) -> Transform:
    def function(call: Any) -> Iterator[Finding]:
        if not call.name:
            yield call.report(f"somebody else's: {call.doubt}")
        elif call.has("flag"):
            yield call.safe_fix("drop the flag", call.rewrite(drop=["flag"]), evidence=["it does nothing"])

    return made("flags", function, calls=OLD, **declared)


def test_calls_are_found_by_meaning_and_carry_evidence() -> None:
    outcome = run("import torch as t\nt.old(1, flag=2)\nold = 3\n", call_transform())
    assert new_text(outcome) == "import torch as t\nt.old(1)\nold = 3\n"
    assert outcome.findings[0].evidence == ("`t.old` is torch.old", "`t` is bound on line 1", "it does nothing")


def test_calls_with_stars_reach_a_transform_only_if_it_asks() -> None:
    text = "import torch\ntorch.old(*[1], flag=2)\n"
    assert run(text, call_transform()).findings == ()
    assert new_text(run(text, call_transform(unpacked=True))) == "import torch\ntorch.old(*[1])\n"


def test_a_doubtful_name_makes_a_note_of_every_fix() -> None:
    text = "try:\n    from torch import old\nexcept ImportError:\n    from mine import old\nold(1, flag=2)\n"
    outcome = run(text, call_transform())
    assert outcome.new is None
    assert [(f.applicability, f.message) for f in outcome.findings] == [
        (Applicability.NOTE, "it may be mine.old or torch.old")
    ]


def test_other_calls_with_a_keyword_of_interest_can_be_asked_for() -> None:
    outcome = run("def g(flag): ...\ng(flag=1)\ng(1)\n", call_transform(keywords=("flag",)))
    assert [f.message for f in outcome.findings] == ["somebody else's: "]


def test_a_fix_that_needs_a_newer_torch_than_the_target_is_a_note() -> None:
    text = "import torch\ntorch.old(1, flag=2)\n"
    outcome = run(text, call_transform(), versions=Versions(target=(0, 4)))
    assert outcome.new is None
    assert [f.applicability for f in outcome.findings] == [Applicability.NOTE]
    assert "needs torch 1.0" in outcome.findings[0].message
    assert run(text, call_transform(), versions=Versions(target=(1, 0, 1))).new is not None


def test_suppressions_silence_and_unused_ones_are_findings() -> None:
    ignore = "# torchmod: ignore[flags]"
    text = f"import torch\ntorch.old(\n    1,\n    flag=2,  {ignore}\n)\nx = 1  {ignore}\n"
    outcome = run(text, call_transform())
    assert outcome.new is None
    assert [(f.transform, f.place.line, f.applicability) for f in outcome.findings if f.place] == [
        ("unused-suppression", 6, Applicability.DISPLAY)
    ]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"x = 1\nx = \xe9\n", "line 2: byte 0xe9 is not utf-8"),
        (b"x = 1\n\0", "line 2: it holds a null byte"),
        (b"x = 1\nprint x\n", "line 2: "),
        (b"# coding: nonsense\n", "unknown encoding"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(data: bytes, reason: str) -> None:
    outcome = run(data, rename("one", {"x": "y"}))
    assert outcome.status is Status.UNREADABLE
    assert reason in outcome.reason


@pytest.mark.parametrize(
    "text",
    [
        "# coding: latin-1\né = a = 1\na\n".encode("latin-1"),
        "# coding: gbk\n名 = a = '中'\na\n".encode("gbk"),
        b"\xef\xbb\xbf" + "é = a = 1\na\n".encode(),
        "é = a = 1\r\na\r\n".encode(),
        "é = a = 1\ra\r".encode(),
        "\x0cé = a = 1\n\x0ca\nif a:\n\t𝒳 = a\n\t\x0ca".encode(),
    ],
    ids=["latin-1", "gbk", "BOM", "CRLF", "CR", "form feed, tab, astral, no last line end"],
)
def test_bytes_outside_the_edits_stay(text: bytes) -> None:
    outcome = run(text, rename("one", {"a": "abc"}))
    assert outcome.status is Status.OK, outcome.reason
    import re

    assert outcome.new == re.sub(rb"\ba\b", b"abc", text)


def test_finding_only_builds_nothing() -> None:
    def build() -> Fix:
        raise AssertionError("built")

    def function(module: Module) -> Iterator[Finding]:
        yield module.safe_fix("later", build)

    outcome = run("x = 1\n", made("later", function, module=True), apply=False, build=False)
    assert [f.applicability for f in outcome.findings] == [Applicability.SAFE]
