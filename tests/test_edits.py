"""Edits compose, rebuild the text, and positions find their way back: tested against the plainest definitions."""

import itertools
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchmod.edits import Kept, Revision, apply, clash, conflict, take
from torchmod.model import Edit, Span

deterministic = settings(derandomize=True, database=None, deadline=None, max_examples=300)
TEXTS = st.text("abcdefgh\n", max_size=20)


@st.composite
def edit_lists(draw: st.DrawFn, length: int) -> list[Edit]:
    """Edits that do not overlap, in any order; they may touch, and insertions may share a point."""
    points = sorted(draw(st.lists(st.integers(0, length), max_size=8)))
    pairs = list(zip(points[::2], points[1::2], strict=False))
    pairs += [(point, point) for point in draw(st.lists(st.sampled_from(points or [0]), max_size=3))]
    pairs = [(s, e) for s, e in pairs if s < e or not any(start < s < end for start, end in pairs)]
    edits = [Edit(start, end, draw(st.text("XYZ\n", max_size=3))) for start, end in pairs]
    return draw(st.permutations(edits))


@st.composite
def passes(draw: st.DrawFn) -> tuple[str, list[list[Edit]]]:
    """A text, and the edits of up to four passes over it, each against the text that the one before left."""
    text = draw(TEXTS)
    now, rounds = text, []
    for _ in range(draw(st.integers(1, 4))):
        rounds.append(draw(edit_lists(len(now))))
        now = plainly(now, rounds[-1])
    return text, rounds


def from_the_right(edits: Iterable[Edit]) -> list[Edit]:
    return sorted(edits, key=lambda edit: (edit.start, edit.end))[::-1]


def plainly(text: str, edits: Sequence[Edit]) -> str:
    """The text with the edits made one by one, from the right."""
    for edit in from_the_right(edits):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def provenance(text: str, rounds: Iterable[Sequence[Edit]]) -> list[int | None]:
    """For each character that is left in the end its place in the original, or None where it was inserted."""
    places: list[int | None] = list(range(len(text)))
    for edits in rounds:
        for edit in from_the_right(edits):
            places[edit.start : edit.end] = [None] * len(edit.text)
    return places


def composed(text: str, rounds: Iterable[Sequence[Edit]]) -> Revision:
    revision = Revision.of(len(text))
    for edits in rounds:
        revision = revision.then(edits)
    return revision


@given(passes())
@deterministic
def test_composing_passes_equals_applying_them_in_turn(case: tuple[str, list[list[Edit]]]) -> None:
    text, rounds = case
    in_turn = text
    for edits in rounds:
        assert apply(in_turn, edits) == plainly(in_turn, edits)
        in_turn = apply(in_turn, edits)
    assert composed(text, rounds).render(text) == in_turn


@given(passes())
@deterministic
def test_edits_rebuild_the_text_sorted_and_never_touching(case: tuple[str, list[list[Edit]]]) -> None:
    text, rounds = case
    revision = composed(text, rounds)
    edits = revision.edits()
    assert plainly(text, edits) == revision.render(text)
    assert all(one.end < other.start for one, other in itertools.pairwise(edits))
    assert all(edit.text or edit.start < edit.end for edit in edits)
    assert not any(conflict(one, other) for n, one in enumerate(edits) for other in edits[:n])


@given(passes())
@deterministic
def test_kept_text_maps_back_exactly_and_inserted_text_to_its_gap(case: tuple[str, list[list[Edit]]]) -> None:
    text, rounds = case
    revision, places = composed(text, rounds), provenance(text, rounds)

    def left(at: int) -> int:
        """Where the character right of an offset comes from; inserted text comes from the start of its gap."""
        if at == len(places):
            return len(text)
        here = places[at]
        before = [place for place in places[:at] if place is not None]
        return here if here is not None else (before[-1] + 1 if before else 0)

    def right(at: int) -> int:
        """The end of where the character left of an offset comes from; for inserted text the end of its gap."""
        if at == 0:
            return 0
        here = places[at - 1]
        after = [place for place in places[at:] if place is not None]
        return here + 1 if here is not None else (after[0] if after else len(text))

    for start in range(len(places) + 1):
        for end in range(start, len(places) + 1):
            expected = sorted([left(start), right(end)])
            assert revision.origin(Span(start, end)) == Span(*expected)


@given(passes())
@deterministic
def test_a_later_pass_does_not_change_an_earlier_revision(case: tuple[str, list[list[Edit]]]) -> None:
    text, rounds = case
    first = Revision.of(len(text)).then(rounds[0])
    pieces, origin = first.pieces, first.origin(Span(0, 0))
    composed(text, rounds)
    first.then([])
    assert (first.pieces, first.origin(Span(0, 0))) == (pieces, origin)


SPANS = st.tuples(st.integers(0, 12), st.integers(0, 4)).map(lambda pair: Edit(pair[0], pair[0] + pair[1], "x"))


@given(st.lists(st.lists(SPANS, min_size=1, max_size=3), max_size=8), st.lists(SPANS, max_size=3))
@deterministic
def test_clash_finds_what_comparing_all_pairs_finds(fixes: list[list[Edit]], edits: list[Edit]) -> None:
    taken: list[Edit] = []
    for fix in fixes:
        alone = not any(overlap(one, other) for n, one in enumerate(fix) for other in fix[:n])
        if alone and not any(conflict(one, other) for one in fix for other in taken):
            assert not clash(fix, taken)
            take(fix, taken)
    assert clash(edits, taken) == any(conflict(one, other) for one in edits for other in taken)
    assert taken == sorted(taken)


def overlap(one: Edit, other: Edit) -> bool:
    """Edits of one fix may touch, and insert at one point; they must not overlap."""
    return one.start < other.end and other.start < one.end


@given(SPANS, SPANS)
@deterministic
def test_two_edits_exclude_each_other_when_they_share_a_place_or_touch(one: Edit, other: Edit) -> None:
    boundaries = set(range(one.start, one.end + 1)) & set(range(other.start, other.end + 1))
    assert conflict(one, other) == conflict(other, one) == bool(boundaries)


def test_insertions_at_one_point_stand_in_the_order_given() -> None:
    assert apply("ab", [Edit(1, 1, "1"), Edit(1, 1, "2"), Edit(1, 1, "3")]) == "a123b"


def test_an_insertion_stands_before_the_replacement_that_starts_there_and_after_the_one_that_ends_there() -> None:
    assert apply("abcd", [Edit(1, 2, "B"), Edit(1, 1, "<"), Edit(2, 2, ">")]) == "a<B>cd"


@pytest.mark.parametrize(
    "edits",
    [
        [Edit(0, 3, "x"), Edit(2, 4, "y")],
        [Edit(0, 3, "x"), Edit(0, 3, "x")],
        [Edit(0, 4, "x"), Edit(2, 2, "y")],
        [Edit(3, 1, "x")],
        [Edit(-1, 1, "x")],
        [Edit(4, 7, "x")],
        [Edit(7, 7, "x")],
    ],
    ids=["overlap", "twice", "insertion inside", "backwards", "before the text", "over the end", "after the text"],
)
def test_edits_that_overlap_or_leave_the_text_are_refused(edits: list[Edit]) -> None:
    with pytest.raises(ValueError, match=r"overlapping edits|outside the text"):
        apply("abcdef", edits)


def test_a_second_pass_that_undoes_an_insertion_leaves_no_edit() -> None:
    revision = Revision.of(4).then([Edit(2, 2, "new")]).then([Edit(2, 5, "")])
    assert revision.edits() == ()
    assert revision.render("abcd") == "abcd"


def test_edits_of_two_passes_that_touch_become_one() -> None:
    revision = Revision.of(6).then([Edit(1, 3, "X")]).then([Edit(2, 3, "Y")])
    assert revision.edits() == (Edit(1, 4, "XY"),)


def test_a_name_that_a_second_pass_writes_into_inserted_text_maps_to_the_first_passes_gap() -> None:
    old = "f(a, b) + c"
    revision = Revision.of(len(old)).then([Edit(0, 7, "g(h(a, b))")])
    inner = Span(2, 9)
    assert revision.render(old)[inner.start : inner.end] == "h(a, b)"
    assert revision.origin(inner) == Span(0, 7)
    assert revision.origin(Span(13, 14)) == Span(10, 11)


def test_an_empty_text_takes_insertions_in_several_passes() -> None:
    revision = Revision.of(0).then([Edit(0, 0, "ab")]).then([Edit(2, 2, "c"), Edit(0, 0, "_")])
    assert revision.render("") == "_abc"
    assert revision.edits() == (Edit(0, 0, "_abc"),)
    assert revision.origin(Span(0, 4)) == Span(0, 0)


def test_what_is_not_touched_stays_one_piece() -> None:
    assert Revision.of(10).then([]).pieces == (Kept(0, 10),)
