"""Which transforms a user has chosen, by names and tags."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from torchmod.basics import UNUSED_SUPPRESSION, TorchmodError
from torchmod.words import nearest

if TYPE_CHECKING:
    from torchmod.prefilter import Row
    from torchmod.settings import Settings


def choose(
    known: Mapping[str, Collection[str]],
    select: Sequence[str] = (),
    extend: Sequence[str] = (),
    ignore: Sequence[str] = (),
) -> list[str]:
    """The names chosen from ``known`` (name -> tags); raises TorchmodError on a word that is neither name nor tag."""
    words = {UNUSED_SUPPRESSION, *known, *(tag for tags in known.values() for tag in tags)}
    for word in (*select, *extend, *ignore):
        if word not in words:
            raise TorchmodError(f"there is no transform or tag called `{word}`{nearest(word, words)}")

    def named(name: str, chosen: Sequence[str]) -> bool:
        return name in chosen or any(tag in chosen for tag in known[name])

    return [
        name
        for name in sorted(known)
        if (not select or named(name, select) or named(name, extend)) and not named(name, ignore)
    ]


def rows(settings: Settings) -> dict[str, Row]:
    """The chosen transforms as the index of names has them; only plugins make it look at transforms themselves."""
    if settings.plugins:
        from torchmod.registry import discover

        known = {name: one.row for name, one in discover(settings.plugins).items()}
    else:
        from torchmod.knowledge.index import INDEX

        known = INDEX
    tags = {name: row.tags for name, row in known.items()}
    return {name: known[name] for name in choose(tags, settings.select, settings.extend_select, settings.ignore)}


def hears_unused(settings: Settings) -> bool:
    """Whether suppressions without a use are told: they are selected and ignored by name, as if by a transform."""
    if UNUSED_SUPPRESSION in settings.ignore:
        return False
    return not settings.select or UNUSED_SUPPRESSION in (*settings.select, *settings.extend_select)
