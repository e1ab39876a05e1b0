"""What the other files of a repository mean by a name: found as Python would find it, and never run."""

import ast
import sys
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from torchmod.names import Names, Resolved
from torchmod.project import MAX_BYTES, MAX_DEPTH, Project

MSE = "torch.nn.MSELoss"
Means = Callable[[Mapping[str, str]], Resolved]


@pytest.fixture
def means(tmp_path: Path) -> Means:
    """Writes the files of a repository; what the last line of the first one, an expression, means there."""

    def write_and_ask(files: Mapping[str, str]) -> Resolved:
        (tmp_path / ".git").mkdir()
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text).strip() + "\n", encoding="utf-8")
        return asked(tmp_path, next(iter(files)))

    return write_and_ask


def asked(root: Path, name: str, project: Project | None = None) -> Resolved:
    tree = ast.parse((root / name).read_text(encoding="utf-8"))
    last = tree.body[-1]
    assert isinstance(last, ast.Expr)
    return Names(tree, (project or Project()).around(str(root / name))).resolve(last.value)


REEXPORT = "from torch.nn import MSELoss"

FOUND = {
    "next to the file": {"train.py": "from losses import MSELoss\nMSELoss", "losses.py": REEXPORT},
    "in a folder above": {"a/b/train.py": "from losses import MSELoss\nMSELoss", "losses.py": REEXPORT},
    "in a package": {"train.py": "from pkg.losses import MSELoss\nMSELoss", "pkg/losses.py": REEXPORT},
    "in a package's own file": {"train.py": "from pkg import MSELoss\nMSELoss", "pkg/__init__.py": REEXPORT},
    "as an attribute": {"train.py": "import losses\nlosses.MSELoss", "losses.py": REEXPORT},
    "as an attribute of a submodule": {"train.py": "import pkg.losses\npkg.losses.MSELoss", "pkg/losses.py": REEXPORT},
    "as an attribute of an alias": {"train.py": "import pkg.losses as l\nl.MSELoss", "pkg/losses.py": REEXPORT},
    "as a module taken from a package": {
        "train.py": "from pkg import losses\nlosses.MSELoss",
        "pkg/losses.py": REEXPORT,
    },
    "relative": {"pkg/train.py": "from .losses import MSELoss\nMSELoss", "pkg/losses.py": REEXPORT},
    "relative, a module": {"pkg/train.py": "from . import losses\nlosses.MSELoss", "pkg/losses.py": REEXPORT},
    "relative, a name": {"pkg/train.py": "from . import MSELoss\nMSELoss", "pkg/__init__.py": REEXPORT},
    "relative, from above": {"pkg/sub/train.py": "from ..losses import MSELoss\nMSELoss", "pkg/losses.py": REEXPORT},
    "relative, a name from above": {"pkg/sub/train.py": "from .. import MSELoss\nMSELoss", "pkg/__init__.py": REEXPORT},
    "a module of torch": {"train.py": "from base import nn\nnn.MSELoss", "base.py": "import torch.nn as nn"},
    "an alias": {"train.py": "from base import Loss\nLoss", "base.py": "import torch\nLoss = torch.nn.MSELoss"},
    "handed on": {
        "train.py": "from a import MSELoss\nMSELoss",
        "a.py": "from b import MSELoss",
        "b.py": "from c.d import MSELoss",
        "c/d.py": REEXPORT,
    },
    "handed on relatively": {
        "train.py": "from pkg import losses\nlosses.MSELoss",
        "pkg/__init__.py": "from .sub import losses",
        "pkg/sub/__init__.py": "from .. import losses",
        "pkg/losses.py": "from .sub.base import MSELoss",
        "pkg/sub/base.py": REEXPORT,
    },
    "handed on by a module next to it from above": {
        "pkg/sub/train.py": "from .b import c\nc.MSELoss",
        "pkg/sub/b.py": "from .. import c",
        "pkg/c.py": REEXPORT,
    },
    "a module next to the file has that name": {
        "train.py": "from torch import nn\nnn.MSELoss",
        "nn.py": "class MSELoss: pass",
    },
    "a module that a package's list leaves out": {
        "train.py": "from torch import nn\nfrom pkg import *\nnn.MSELoss",
        "pkg/__init__.py": "__all__ = ['x']\nfrom .nn import x",
        "pkg/nn.py": "class MSELoss: pass",
    },
    "handed on by a relative import from above": {
        "pkg/train.py": "from .a.b import losses\nlosses.MSELoss",
        "pkg/a/b.py": "from .. import losses",
        "pkg/losses.py": REEXPORT,
    },
    "a star import": {"train.py": "from losses import *\nMSELoss", "losses.py": REEXPORT},
    "a star import of a star import": {"train.py": "from a import *\nMSELoss", "a.py": "from torch.nn import *"},
    "through a star import": {"train.py": "import a\na.MSELoss", "a.py": "from torch.nn import *"},
    "a star import with a list": {
        "train.py": "from a import *\n_Loss",
        "a.py": "__all__ = ['_Loss']\nfrom torch.nn import MSELoss as _Loss",
    },
    "a name that a star import's list leaves out": {
        "train.py": "from torch.nn import MSELoss\nfrom a import *\nMSELoss",
        "a.py": "__all__ = ['b']\nfrom c import MSELoss, b",
    },
    "a name that a star import does not bind": {
        "train.py": "from torch.nn import MSELoss as _M\nfrom a import *\n_M",
        "a.py": "from c import _M",
    },
    "files that import each other": {
        "a.py": "from b import nn\nimport b\nb.MSELoss",
        "b.py": "from torch import nn\nfrom a import nn as own\nMSELoss = nn.MSELoss",
    },
    "a file in Latin-1": {
        "train.py": "from base import nn\nnn.MSELoss",
        "base.py": "# coding: latin-1\nimport torch.nn as nn",
    },
    "the same in two files of that name": {
        "a/train.py": "from utils import MSELoss\nMSELoss",
        "a/utils.py": REEXPORT,
        "utils.py": "import torch\nMSELoss = torch.nn.MSELoss",
    },
}


@pytest.mark.parametrize("name", FOUND)
def test_a_name_of_torch_is_found(name: str, means: Means) -> None:
    assert means(FOUND[name]).only == MSE


OWN = {
    "a class": ({"train.py": "from losses import Focal\nFocal", "losses.py": "class Focal: pass"}, "losses:Focal"),
    "relative": (
        {"p/train.py": "from .losses import Focal\nFocal", "p/losses.py": "class Focal: pass"},
        ".losses:Focal",
    ),
    "handed on": (
        {"train.py": "from a import Focal\nFocal", "a.py": "from b import Focal", "b.py": "class Focal: pass"},
        "b:Focal",
    ),
    "handed on relatively": (
        {
            "train.py": "from p import Focal\nFocal",
            "p/__init__.py": "from .losses import Focal",
            "p/losses.py": "class Focal: pass",
        },
        "p.losses:Focal",
    ),
    "of the name of torch's": (
        {"train.py": "from losses import MSELoss\nMSELoss", "losses.py": "class MSELoss: pass"},
        "losses:MSELoss",
    ),
    "over a star import": (
        {"train.py": "from a import *\nMSELoss", "a.py": "from torch.nn import *\nclass MSELoss: pass"},
        "a:MSELoss",
    ),
    "not in this repository": ({"train.py": "from utils import MSELoss\nMSELoss"}, "utils.MSELoss"),
    "relative and only above": (
        {"p/train.py": "from .losses import MSELoss\nMSELoss", "losses.py": REEXPORT},
        ".losses.MSELoss",
    ),
    "relative and not there": ({"train.py": "from .utils import MSELoss\nMSELoss"}, ".utils.MSELoss"),
}


@pytest.mark.parametrize("name", OWN)
def test_what_a_file_defines_itself_is_known_by_its_module(name: str, means: Means) -> None:
    files, expected = OWN[name]
    assert means(files).only == expected


NOT_TORCH = {
    "a class or torch's": {
        "train.py": "from losses import MSELoss\nMSELoss",
        "losses.py": "from torch.nn import MSELoss\nif x:\n    class MSELoss: pass",
    },
    "another file of that name": {
        "a/train.py": "from utils import MSELoss\nMSELoss",
        "a/utils.py": REEXPORT,
        "utils.py": "class MSELoss: pass",
    },
    "a package before a module of that name": {
        "train.py": "from losses import MSELoss\nMSELoss",
        "losses.py": REEXPORT,
        "losses/__init__.py": "class MSELoss: pass",
    },
    "a name that another file means in its own folder": {
        "train.py": "from a.b import c\nc.MSELoss",
        "a/b.py": "from . import c",
        "a/c.py": "class MSELoss: pass",
        "c.py": REEXPORT,
    },
    "a module that another file finds next to itself": {
        "train.py": "from a.b import c\nc.MSELoss",
        "a/b.py": "import c",
        "a/c.py": "class MSELoss: pass",
        "c.py": REEXPORT,
    },
    "a file outside the repository's root": {
        "repo/train.py": "from losses import MSELoss\nMSELoss",
        "repo/setup.py": "",
        "losses.py": REEXPORT,
    },
    "a module of the repository that is called torch": {
        "train.py": "import torch\ntorch.nn.MSELoss",
        "torch/__init__.py": "from . import nn",
        "torch/nn.py": "class MSELoss: pass",
    },
    "a file that cannot be parsed": {"train.py": "from losses import MSELoss\nMSELoss", "losses.py": REEXPORT + "\n(("},
    "a file that is too large": {
        "train.py": "from losses import MSELoss\nMSELoss",
        "losses.py": REEXPORT + "\n#" + "x" * MAX_BYTES,
    },
    "a name that the file does not have": {
        "train.py": "from losses import MSELoss\nMSELoss",
        "losses.py": "import torch",
    },
    "what the other file replaces": {
        "train.py": "from losses import nn\nnn.MSELoss",
        "losses.py": "import torch.nn as nn\nclass nn: pass",
    },
    "what the other file patches": {
        "train.py": "from losses import MSELoss\nMSELoss",
        "losses.py": "import torch.nn as nn\nnn.MSELoss = 1\nMSELoss = nn.MSELoss",
    },
    "what this file patches in the other": {
        "train.py": "import losses\nlosses.MSELoss = 1\nlosses.MSELoss",
        "losses.py": REEXPORT,
    },
    "a star import that overrides": {
        "train.py": "from torch.nn import MSELoss\nfrom losses import *\nMSELoss",
        "losses.py": "class MSELoss: pass",
    },
    "a star import that may override": {
        "train.py": "from torch.nn import MSELoss\nfrom losses import *\nMSELoss",
        "losses.py": "if x:\n    class MSELoss: pass",
    },
    "a star import of a list with a private name": {
        "train.py": "from torch.nn import MSELoss as _M\nfrom losses import *\n_M",
        "losses.py": "__all__ = ['_M']\nclass _M: pass",
    },
    "a star import of a computed list": {
        "train.py": "from torch.nn import MSELoss\nfrom losses import *\nMSELoss",
        "losses.py": "__all__ = sorted(globals())",
    },
    "a star import of a file with an unknown star": {
        "train.py": "from torch.nn import MSELoss\nfrom losses import *\nMSELoss",
        "losses.py": "from elsewhere import *",
    },
    "a star import of a file that cannot be parsed": {
        "train.py": "from torch.nn import MSELoss\nfrom losses import *\nMSELoss",
        "losses.py": "((",
    },
    "a star import of one of two files": {
        "a/train.py": "from torch.nn import MSELoss\nfrom utils import *\nMSELoss",
        "a/utils.py": "x = 1",
        "utils.py": "class MSELoss: pass",
    },
    "star imports in a circle": {
        "train.py": "from torch.nn import MSELoss\nfrom a import *\nMSELoss",
        "a.py": "from b import *",
        "b.py": "from a import *\nclass MSELoss: pass",
    },
    "a module that a package's star import may bring": {
        "train.py": "import torch.nn.functional as functional\nfrom pkg import *\nfunctional.mse_loss",
        "pkg/__init__.py": "from .functional import x",
        "pkg/functional.py": "def mse_loss(): pass\nx = 1",
    },
    "a module that an import binds in its package": {
        "pkg/__init__.py": "from torch.nn import functional\nfrom .functional import x\nfunctional.mse_loss",
        "pkg/functional.py": "def mse_loss(): pass\nx = 1",
    },
    "a package's name that its module takes": {
        "train.py": "from pkg import functional\nfunctional.mse_loss",
        "pkg/__init__.py": "from torch.nn import functional\nfrom .functional import x",
        "pkg/functional.py": "def mse_loss(): pass\nx = 1",
    },
    "names in a circle": {
        "a.py": "from b import x\nx",
        "b.py": "from a import x",
    },
}


@pytest.mark.parametrize("name", NOT_TORCH)
def test_torch_is_not_claimed_of(name: str, means: Means) -> None:
    found = means(NOT_TORCH[name]).only
    assert found is None or not found.startswith("torch")


def test_a_chain_of_many_files_is_given_up_without_recursion(means: Means) -> None:
    aliases = "".join(f"x{n + 1} = x{n}\n" for n in range(10)) + "x = x10"
    files = {"f0.py": "from f1 import x\nx"}
    files |= {f"f{n}.py": f"from f{n + 1} import x as x0\n{aliases}" for n in range(1, 300)}
    files["f300.py"] = "from torch.nn import MSELoss as x"
    assert means(files).only == f"f{MAX_DEPTH + 1}.x"


def test_answers_do_not_depend_on_who_asked_first(tmp_path: Path) -> None:
    circle = "try:\n    from {} import x\nexcept E:\n    from torch.nn import MSELoss as x\nx"
    patch = "import {0}, torch.nn as nn\n{0}.nn.MSELoss = 1\nfrom {0} import MSELoss\nMSELoss"
    files = {
        "a.py": circle.format("b"),
        "b.py": circle.format("c"),
        "c.py": "from a import x\nx",
        "d.py": "from e import *\nfrom c import x\nMSELoss",
        "e.py": "from f import *\nfrom torch.nn import *\nMSELoss",
        "f.py": "from d import *\nMSELoss",
        "g.py": patch.format("h"),
        "h.py": patch.format("g"),
    }
    files |= {f"n{n}.py": f"from n{n + 1} import x\nfrom n{n + 1} import *\nx" for n in range(MAX_DEPTH)}
    files[f"n{MAX_DEPTH}.py"] = f"{REEXPORT} as x\nx"
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    alone = {name: asked(tmp_path, name) for name in files}
    assert alone["n0.py"].only == MSE
    for order in [list(files), list(reversed(files)), *([name, *files] for name in files)]:
        project = Project()
        assert {name: asked(tmp_path, name, project) for name in order} == alone


def test_files_are_read_through_the_given_function_once(tmp_path: Path) -> None:
    (tmp_path / "losses.py").write_text("on the disk it is something else", encoding="utf-8")
    read: list[str] = []

    def from_snapshot(path: str) -> bytes:
        read.append(path)
        return b"from torch.nn import MSELoss, L1Loss"

    project = Project(from_snapshot)
    (tmp_path / "train.py").write_text("from losses import MSELoss as m, L1Loss as n\nm or n", encoding="utf-8")
    assert asked(tmp_path, "train.py", project).names == {MSE, "torch.nn.L1Loss"}
    assert read == [str(tmp_path / "losses.py")]


def test_a_file_that_cannot_be_read_is_nothing_known(tmp_path: Path) -> None:
    def refuse(path: str) -> bytes:
        raise PermissionError(path)

    (tmp_path / "losses.py").write_text("", encoding="utf-8")
    (tmp_path / "train.py").write_text("from losses import *\nMSELoss", encoding="utf-8")
    found = asked(tmp_path, "train.py", Project(refuse))
    assert (found.only, found.doubt) == (None, "`from losses import *` (line 1) may define `MSELoss`")


def test_nothing_of_the_project_is_imported_or_run(means: Means, tmp_path: Path) -> None:
    trap = f"open({str(tmp_path / 'ran')!r}, 'w')\n{REEXPORT}"
    assert means({"train.py": "from losses import *\nMSELoss", "losses.py": trap}).only == MSE
    assert not (tmp_path / "ran").exists()
    assert "losses" not in sys.modules
