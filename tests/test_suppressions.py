"""Which lines a suppression comment silences, and what is said of one that silences nothing or cannot be understood."""

import textwrap

import pytest

from torchmod.model import Applicability
from torchmod.source import Source
from torchmod.suppressions import Suppressions

NEWLINES = pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
KNOWN = ("cuda-to-device", "data-item", "loss-reduction")


def suppressions(text: str, newline: str = "\n") -> Suppressions:
    source = Source("x.py", text.replace("\n", newline))
    return Suppressions(source, source.parse())


def silenced(text: str, name: str = "data-item", newline: str = "\n") -> list[int]:
    """The lines on which a finding would be silenced."""
    found = suppressions(text, newline)
    return [line for line in range(1, text.count("\n") + 2) if found.silences(name, line)]


def complaints(text: str, active: tuple[str, ...] = KNOWN, used: tuple[tuple[str, int], ...] = ()) -> list[str]:
    """What is said of a file's comments after the given names were found on the given lines."""
    found = suppressions(text)
    for name, line in used:
        found.silences(name, line)
    return [finding.message for finding in found.findings("x.py", active, KNOWN)]


LINES = {
    "a simple statement": """
        a = 1
        b = 2  # torchmod: ignore[data-item]  <
        c = 3
    """,
    "the first line of a long statement": """
        b = f(  # torchmod: ignore[data-item]  <
            1,  # <
        )  # <
        c = 3
    """,
    "the last line of a long statement": """
        a = 1
        b = f(  # <
            1,  # <
        )  # torchmod: ignore[data-item]  <
        c = 3
    """,
    "a line of its own inside a statement": """
        b = f(  # <
            # torchmod: ignore[data-item]  <
            1,  # <
        )  # <
    """,
    "a line of its own before a statement": """
        a = 1
        # torchmod: ignore[data-item]  <
        b = 2
    """,
    "inside the string of a statement it shares a line with": '''
        a = """  <
        """ + b  # torchmod: ignore[data-item]  <
        c = 3
    ''',
    "the header of a compound statement only": """
        if (a  # <
                and b):  # torchmod: ignore[data-item]  <
            c = 1
        else:
            d = 2
    """,
    "the end of a definition's header": """
        def f(  # <
            a=1,  # <
        ) -> int:  # torchmod: ignore[data-item]  <
            return a
    """,
    "the header of a class": """
        class A(  # torchmod: ignore[data-item]  <
            B,  # <
        ):  # <

            x = 1
    """,
    "a body's line, not the header": """
        with a as b:
            c = 1  # torchmod: ignore[data-item]  <
            d = 2
    """,
    "a line between a header and its body": """
        for a in b:
            # torchmod: ignore[data-item]  <

            c = 1
    """,
    "a body on the line of its header": """
        if a: b = f(  # <
            1)  # torchmod: ignore[data-item]  <
        c = 3
    """,
    "a long header with its body on the last line": """
        with f(  # <
            1): b = 2  # torchmod: ignore[data-item]  <
        c = 3
    """,
    "two statements on a line": """
        a = f(  # <
            1); b = g(  # torchmod: ignore[data-item]  <
            2)  # <
        c = 3
    """,
    "a decorator, not what it decorates": """
        @f(  # <
            1,  # torchmod: ignore[data-item]  <
        )  # <
        @g
        def h():
            pass
    """,
    "a definition, not its decorators": """
        @f
        def g(a):  # torchmod: ignore[data-item]  <
            pass
    """,
    "a header before a decorated body": """
        class A:  # torchmod: ignore[data-item]  <
            @f
            def g(self):
                pass
    """,
    "an elif": """
        if a:
            b = 1
        elif (c  # <
              and d):  # torchmod: ignore[data-item]  <
            b = 2
    """,
    "an except clause": """
        try:
            a = 1
        except (B,  # torchmod: ignore[data-item]  <
                C):  # <
            pass
        else:
            a = 2
    """,
    "an else, which is a line of its own": """
        while a:
            b = 1
        else:  # torchmod: ignore[data-item]  <
            c = 1
    """,
    "the header of a match": """
        match (a,  # <
               b):  # torchmod: ignore[data-item]  <
            case 1:
                c = 1
    """,
    "a case": """
        match a:
            case (1 |  # torchmod: ignore[data-item]  <
                  2):  # <
                c = 1
            case _:
                c = 2
    """,
    "the header of a try": """
        try:  # torchmod: ignore[data-item]  <
            a = 1
        finally:
            b = 1
    """,
}


@pytest.mark.parametrize("name", LINES)
@NEWLINES
def test_a_comment_silences_the_lines_of_its_statement(name: str, newline: str) -> None:
    text = textwrap.dedent(LINES[name]).lstrip("\n")
    expected = [number for number, line in enumerate(text.split("\n"), 1) if line.endswith("<")]
    assert silenced(text, newline=newline) == expected


def test_only_the_named_transforms_are_silenced() -> None:
    text = "a = 1  # torchmod: ignore[data-item, loss-reduction]\n"
    assert silenced(text, "data-item") == silenced(text, "loss-reduction") == [1]
    assert silenced(text, "cuda-to-device") == []


@pytest.mark.parametrize(
    "comment",
    [
        "#torchmod:ignore[data-item]",
        "#  torchmod:  ignore  [ data-item ]",
        "# torchmod: ignore[data-item]: a batch element",
        "# type: ignore  # torchmod: ignore[data-item]",
        "# torchmod: ignore[data-item] # noqa",
        "# torchmod: ignore[loss-reduction]  # torchmod: ignore[data-item]",
        "# torchmod: ignore[loss-reduction,data-item,]",
    ],
)
def test_spaces_and_company_do_not_matter(comment: str) -> None:
    assert silenced(f"a = 1  {comment}\n") == [1]


@pytest.mark.parametrize(
    "text",
    [
        "a = '# torchmod: ignore[data-item]'\n",
        "a = '''\n# torchmod: ignore[data-item]\n'''\n",
        '"""Write\n\n    x  # torchmod: ignore[data-item]\n"""\na = 1\n',
        "a = f'{b}# torchmod: ignore[data-item]'\n",
        "a = 1  # as torchmod: ignore[data-item] says\n",
        "a = 1  # torchmod ignore[data-item]\n",
    ],
)
def test_strings_and_prose_are_no_suppressions(text: str) -> None:
    assert suppressions(text).all == []


@pytest.mark.parametrize(
    "text",
    [
        "# torchmod: ignore-file[data-item]\na = 1\n",
        '#!/usr/bin/env python\n"""A docstring."""  # torchmod: ignore-file[data-item]\n\na = 1\n',
        '"""A docstring."""\n\n# torchmod: ignore-file[data-item]\n@f\ndef g(): pass\n',
        "# torchmod: ignore-file[data-item]\n",
        '"""A docstring, and nothing else."""\n# torchmod: ignore-file[data-item]\n',
    ],
)
@NEWLINES
def test_a_comment_at_the_top_silences_the_whole_file(text: str, newline: str) -> None:
    assert silenced(text, newline=newline) == list(range(1, text.count("\n") + 2))
    assert silenced(text, "loss-reduction") == []


@pytest.mark.parametrize(
    "text",
    [
        "a = 1  # torchmod: ignore-file[data-item]\n",
        "import a\n# torchmod: ignore-file[data-item]\n",
        "@f  # torchmod: ignore-file[data-item]\ndef g(): pass\n",
        "'a' + b\n# torchmod: ignore-file[data-item]\n",
    ],
)
def test_a_file_suppression_further_down_silences_nothing_and_says_so(text: str) -> None:
    assert silenced(text) == []
    assert complaints(text) == ["`ignore-file` belongs at the top of the file, before the first statement"]


def test_a_suppression_that_silences_nothing_is_a_finding_with_its_place() -> None:
    found = suppressions("a = 'é𝒳'  # torchmod: ignore[data-item]\n")
    (finding,) = found.findings("dir/x.py", KNOWN, KNOWN)
    assert finding.message == "`data-item` has nothing to silence here: remove it"
    assert (finding.transform, finding.applicability) == ("unused-suppression", Applicability.DISPLAY)
    assert (finding.path, finding.span.start, finding.span.end) == ("dir/x.py", 10, 39)


def test_of_several_names_each_unused_one_is_told() -> None:
    text = "a = 1\nb = 1  # torchmod: ignore[data-item, loss-reduction, cuda-to-device]\n"
    assert complaints(text, used=(("data-item", 2), ("loss-reduction", 1))) == [
        "`loss-reduction` has nothing to silence here: remove it",
        "`cuda-to-device` has nothing to silence here: remove it",
    ]


def test_two_comments_on_one_statement_are_both_used() -> None:
    text = "a = f(  # torchmod: ignore[data-item]\n)  # torchmod: ignore[data-item]\n"
    assert complaints(text, used=(("data-item", 1),)) == []


def test_a_file_suppression_that_silences_nothing_is_told() -> None:
    text = "# torchmod: ignore-file[data-item]\na = 1\n"
    assert complaints(text) == ["`data-item` has nothing to silence here: remove it"]
    assert complaints(text, used=(("data-item", 2),)) == []


def test_names_of_transforms_that_did_not_run_are_not_called_unused() -> None:
    assert complaints("a = 1  # torchmod: ignore[data-item]\n", active=("loss-reduction",)) == []


@pytest.mark.parametrize(("name", "hint"), [("data-itm", "; did you mean `data-item`?"), ("zzz", "")])
def test_an_unknown_name_is_told_with_the_nearest_one(name: str, hint: str) -> None:
    assert complaints(f"a = 1  # torchmod: ignore[{name}]\n") == [f"there is no transform called `{name}`{hint}"]


@pytest.mark.parametrize(
    ("comment", "told"),
    [
        ("# torchmod: ignore", "name what to silence, as in `# torchmod: ignore[name]`"),
        ("# torchmod: ignore[]", "name what to silence, as in `# torchmod: ignore[name]`"),
        ("# torchmod: ignore[ , ]", "name what to silence, as in `# torchmod: ignore[name]`"),
        ("# torchmod: ignore[data-item", "name what to silence, as in `# torchmod: ignore[name]`"),
        ("# torchmod: ignore-file", "name what to silence, as in `# torchmod: ignore-file[name]`"),
        ("# torchmod: noqa", "write `# torchmod: ignore[name]` or `# torchmod: ignore-file[name]`"),
        ("# torchmod: ignore-next[data-item]", "write `# torchmod: ignore[name]` or `# torchmod: ignore-file[name]`"),
        ("# torchmod:", "write `# torchmod: ignore[name]` or `# torchmod: ignore-file[name]`"),
    ],
)
def test_a_comment_that_cannot_be_understood_silences_nothing_and_is_told(comment: str, told: str) -> None:
    text = f"{comment}\na = 1  {comment}\n"
    assert silenced(text) == []
    assert complaints(text) == [told, told]


def test_what_an_earlier_pass_used_stays_used_as_long_as_no_comment_came_or_went() -> None:
    before = suppressions("a = 1  # torchmod: ignore[data-item]\nb = 1  # torchmod: ignore[data-item]\n")
    before.silences("data-item", 2)
    after = suppressions("import t\na = 1  # torchmod: ignore[data-item]\nb = 2  # torchmod: ignore[data-item]\n")
    after.carry_over(before)
    assert [one.used for one in after.all] == [set(), {"data-item"}]
    fewer = suppressions("b = 2  # torchmod: ignore[data-item]\n")
    fewer.carry_over(before)
    assert [one.used for one in fewer.all] == [set()]


def test_in_other_documents_a_comment_silences_its_line_and_the_next() -> None:
    source = Source("run.sh", "set -e\necho '#'  # torchmod: ignore[data-item]\r\npython a.py\npython b.py\n")
    found = Suppressions(source, None)
    assert [line for line in range(1, 6) if found.silences("data-item", line)] == [2, 3]
    (one,) = found.all
    assert source.text[one.span.start : one.span.end] == "# torchmod: ignore[data-item]"


@pytest.mark.parametrize(("line", "whole"), [(1, True), (5, True), (6, False)])
def test_in_other_documents_the_top_is_the_first_five_lines(line: int, whole: bool) -> None:
    source = Source("run.sh", "\n" * (line - 1) + "# torchmod: ignore-file[data-item]\n" + "\n" * 9)
    assert Suppressions(source, None).silences("data-item", 12) == whole


def test_a_file_without_the_mark_is_not_taken_into_tokens() -> None:
    assert Suppressions(Source("x.py", "a = (\n"), None).all == []
