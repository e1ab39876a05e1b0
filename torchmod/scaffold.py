"""``torchmod new NAME``: a transform's module and its three golden cases, all failing until they are filled."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from torchmod.model import TorchmodError

_MODULE = '''"""Say in one line what it replaces by what.

Say why: what changed in torch, in which release, and what today's torch does with the old code. Say when the rewrite is
safe, when it is unsafe, and what is left alone.
"""

from collections.abc import Iterator

from torchmod.api import Call, Finding, Signature, transform

CALLS = {{"torch.{name}": Signature(("input",))}}


@transform(calls=CALLS, since="1.0", tags=("",), link="")
def {name}(call: Call) -> Iterator[Finding]:
    if not call.has("input"):  # not mine
        return
    yield call.report("why it is left alone")  # cannot tell
    # yield call.safe_fix("what the fix does", call.rewrite(drop=["input"]))
'''

_CASES = {
    "rewrites_simple": ("before.py", "after.py", "findings.txt"),
    "keeps_other_names": ("before.py",),
    "reports_unknown": ("before.py", "findings.txt"),
}


def new(name: str) -> Iterator[Path]:
    """Write the files of a new transform, giving each path. Raises TorchmodError where one is there already."""
    module = name.replace("-", "_")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", module):
        raise TorchmodError(f"`{name}` cannot be a transform's name: use lower-case words joined by hyphens")
    root = Path.cwd()
    if not (root / "transforms").is_dir() or not (root / "golden").is_dir():
        raise TorchmodError("`new` works in torchmod's own checkout: there are no folders transforms/ and golden/ here")
    path, cases = root / "transforms" / f"{module}.py", root / "golden" / module
    for there in (path, cases):
        if there.exists():
            raise TorchmodError(f"{there.relative_to(root)} is there already")
    path.write_text(_MODULE.format(name=module), encoding="utf-8")
    yield path.relative_to(root)
    for case, files in _CASES.items():
        folder = cases / case
        folder.mkdir(parents=True)
        for file in files:
            (folder / file).write_text("", encoding="utf-8")
        yield folder.relative_to(root)
