"""Syntax of old code that no Python since 3.7 reads."""

from __future__ import annotations

import io
import tokenize

from torchmod.verify.legacy.record import fired

_LAYOUT = {tokenize.NL, tokenize.COMMENT}


def modernise(source: str) -> str:
    """The source with the keyword argument ``async=`` as ``non_blocking=``; lines keep their numbers."""
    if "async" not in source:
        return source
    tokens = [token for token in tokenize.generate_tokens(io.StringIO(source).readline) if token.type not in _LAYOUT]
    lines = source.splitlines(keepends=True)
    for before, token, after in reversed(list(zip(tokens, tokens[1:], tokens[2:], strict=False))):
        if token.string == "async" and before.string in ("(", ",") and after.string == "=":
            fired["async="] += 1
            row, column = token.start
            line = lines[row - 1]
            lines[row - 1] = f"{line[:column]}non_blocking{line[column + len('async') :]}"
    return "".join(lines)
