"""Where a needed name comes from: the file's own alias, or an import that stands in the right place."""

import ast
from collections.abc import Sequence

import pytest

from torchmod.edits import apply
from torchmod.guards import check_python
from torchmod.imports import name_for, preludes
from torchmod.model import Edit, Need, Refused
from torchmod.names import Names
from torchmod.source import Source
from torchmod.subjects import Module

TORCH = Need("import torch")


def marked(names: Names) -> ast.Name:
    return next(n for n in ast.walk(names.tree) if isinstance(n, ast.Name) and n.id == "MARK")


def spelt(text: str, qualified: str = "torch.nn.functional.relu") -> str:
    """How a name is written at MARK, where nothing needs to be imported for it."""
    source = Source("x.py", text)
    names = Names(source.parse())
    name, needs = name_for(source, names, qualified, marked(names))
    assert needs == ()
    return name


def imported(text: str, qualified: str = "torch.nn") -> str:
    """The text with what a name at MARK needs."""
    module = Module.of(Source("x.py", text))
    name, needs = module.import_name(qualified, marked(module.names))
    assert name == qualified
    return with_needs(text, needs)


def with_needs(text: str, needs: Sequence[Need]) -> str:
    source = Source("x.py", text)
    tree = source.parse()
    edits = preludes(source, tree, needs)
    new = source.revised(apply(text, edits))
    new_tree = new.parse()
    check_python(source, Names(tree), new, Names(new_tree), edits)
    assert ast.get_docstring(new_tree) == ast.get_docstring(tree)
    return new.text


# aliases


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("import torch", "torch.nn.functional.relu"),
        ("import torch.nn", "torch.nn.functional.relu"),
        ("import torch.nn.functional", "torch.nn.functional.relu"),
        ("import torch.nn.functional as F", "F.relu"),
        ("from torch.nn import functional as F", "F.relu"),
        ("from torch.nn import functional", "functional.relu"),
        ("from torch import nn", "nn.functional.relu"),
        ("from torch.nn.functional import relu", "relu"),
        ("from torch.nn.functional import relu as r", "r"),
        ("import torch as t", "t.nn.functional.relu"),
        ("import torch\nfrom torch import nn\nimport torch.nn.functional as F", "F.relu"),
        ("import torch\nN = torch.nn", "torch.nn.functional.relu"),
        ("import torch.nn.functional as F\ndel x\nFF = F", "F.relu"),
    ],
)
def test_the_shortest_spelling_of_the_file_is_used(head: str, expected: str) -> None:
    assert spelt(f"{head}\nx = MARK\n") == expected
    assert spelt(f"{head}\ndef f(self):\n    return [MARK for y in z]\n") == expected


def test_the_name_itself_may_be_what_is_imported() -> None:
    assert spelt("import torch\nx = MARK\n", "torch") == "torch"
    assert spelt("import torch as t\nx = MARK\n", "torch") == "t"


@pytest.mark.parametrize(
    "text",
    [
        "def f(F):\n    return MARK\n",
        "def f(*F):\n    return MARK\n",
        "def f():\n    F = 1\n    return MARK\n",
        "def f():\n    for F in x: pass\n    return MARK\n",
        "def f():\n    import other as F\n    return MARK\n",
        "def f(F):\n    def g():\n        return MARK\n",
        "f = lambda F: MARK\n",
        "x = [MARK for F in y]\n",
        "x = [F for F in y if MARK]\n",
        "class K:\n    F = 1\n    x = MARK\n",
        "try: pass\nexcept E as e:\n    def f():\n        with x as F:\n            MARK\n",
    ],
)
def test_an_alias_that_means_something_else_there_is_not_used(text: str) -> None:
    head = "import torch\nimport torch.nn.functional as F\n"
    assert spelt(head + text) == "torch.nn.functional.relu"


@pytest.mark.parametrize(
    "text",
    [
        "F = other",
        "F += 1",
        "for F in x: pass",
        "import other as F",
        "if x:\n    import other as F",
        "def F(): pass",
        "class F: pass",
        "with x as F: pass",
        "def g():\n    global F\n    F = 1",
    ],
)
def test_an_alias_that_the_module_binds_twice_is_not_used(text: str) -> None:
    assert spelt(f"import torch\nimport torch.nn.functional as F\n{text}\nMARK\n") == "torch.nn.functional.relu"


@pytest.mark.parametrize(
    "head",
    [
        "try:\n    import torch.nn.functional as F\nexcept ImportError:\n    F = None",
        "if x:\n    import torch.nn.functional as F",
        "def g():\n    import torch.nn.functional as F",
        "class K:\n    import torch.nn.functional as F",
    ],
)
def test_an_alias_that_may_not_be_there_is_not_used(head: str) -> None:
    assert spelt(f"import torch\n{head}\nMARK\n") == "torch.nn.functional.relu"


def test_an_alias_that_comes_later_is_not_used() -> None:
    assert spelt("import torch\nMARK\nimport torch.nn.functional as F\n") == "torch.nn.functional.relu"
    assert spelt("import torch\nMARK; import torch.nn.functional as F\n") == "torch.nn.functional.relu"


@pytest.mark.parametrize(
    "text",
    [
        "torch = 1\nMARK\n",
        "def f(torch):\n    return MARK\n",
        "def f():\n    import torch\n    MARK\n",
        "class K:\n    torch = 1\nMARK\n",
        "try:\n    import torch\nexcept ImportError:\n    torch = None\nMARK\n",
        "import other as torch\nMARK\n",
        "MARK\nprint(torch)\n",
        "MARK\nimport torch\n",
    ],
)
def test_a_name_that_the_file_uses_for_something_else_is_not_taken(text: str) -> None:
    with pytest.raises(Refused, match="uses that name for something else"):
        imported(text)


# where an import goes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # after the imports
        ("import os\nMARK\n", "import os\n@import torch\nMARK\n"),
        ("import os\nimport sys\n\n\nMARK\n", "import os\nimport sys\n@import torch\n\n\nMARK\n"),
        ("from os import (\n    path,\n)  # c\nMARK\n", "from os import (\n    path,\n)  # c\n@import torch\nMARK\n"),
        ("import os  # c\n# d\nMARK\n", "import os  # c\n@import torch\n# d\nMARK\n"),
        ("import os; import sys\nMARK\n", "import os; import sys\n@import torch\nMARK\n"),
        ("import os; x = 1\nMARK\n", "import os; x = 1\n@import torch\nMARK\n"),
        ("import os; x = (\n    1)\nMARK\n", "import os; x = (\n    1)\n@import torch\nMARK\n"),
        ("import os; x = (\n 1); y = [\n 2]\nMARK\n", "import os; x = (\n 1); y = [\n 2]\n@import torch\nMARK\n"),
        ("import os \\\n\nMARK\n", "import os \\\n\n@import torch\nMARK\n"),
        ("import os  # \\\nMARK\n", "import os  # \\\n@import torch\nMARK\n"),
        ("import os;\nMARK\n", "import os;\n@import torch\nMARK\n"),
        ("x = 1\nimport os\nMARK\n", "x = 1\nimport os\n@import torch\nMARK\n"),
        # not after imports that come too late
        ("import os\nMARK\nimport sys\n", "import os\n@import torch\nMARK\nimport sys\n"),
        ("MARK\nimport sys\n", "@import torch\nMARK\nimport sys\n"),
        ("def f():\n    MARK\nimport sys\n", "@import torch\ndef f():\n    MARK\nimport sys\n"),
        # what counts as one
        (
            "try:\n    import os\nexcept ImportError:\n    os = None\nMARK\n",
            "try:\n    import os\nexcept ImportError:\n    os = None\n@import torch\nMARK\n",
        ),
        (
            "if x:\n    import os\nelse:\n    os = None\nMARK\n",
            "if x:\n    import os\nelse:\n    os = None\n@import torch\nMARK\n",
        ),
        ("if x: import os\nMARK\n", "if x: import os\n@import torch\nMARK\n"),
        ("if x:\n    y = 1\nMARK\n", "@import torch\nif x:\n    y = 1\nMARK\n"),
        ("def f():\n    import os\nMARK\n", "@import torch\ndef f():\n    import os\nMARK\n"),
        # after the docstring and `__future__`
        ('"""Doc."""\nMARK\n', '"""Doc."""\n@import torch\nMARK\n'),
        ('"""Doc.\n"""\n\nMARK\n', '"""Doc.\n"""\n@import torch\n\nMARK\n'),
        ('"""Doc."""; x = 1\nMARK\n', '"""Doc."""; x = 1\n@import torch\nMARK\n'),
        ("from __future__ import division\nMARK\n", "from __future__ import division\n@import torch\nMARK\n"),
        (
            '"""Doc."""\nfrom __future__ import division\nx = 1\nMARK\n',
            '"""Doc."""\nfrom __future__ import division\n@import torch\nx = 1\nMARK\n',
        ),
        # without anything of the sort
        ("MARK\n", "@import torch\nMARK\n"),
        ("\n\nMARK\n", "\n\n@import torch\nMARK\n"),
        ("x = 1\nMARK\n", "@import torch\nx = 1\nMARK\n"),
        ("x = 1; MARK\n", "@import torch\nx = 1; MARK\n"),
        ("import os; MARK\n", "@import torch\nimport os; MARK\n"),
        ("1\nMARK\n", "@import torch\n1\nMARK\n"),
        (
            "#!/usr/bin/python\n# coding: utf-8\n# c\nMARK\n",
            "#!/usr/bin/python\n# coding: utf-8\n# c\n@import torch\nMARK\n",
        ),
        ("@MARK\ndef f(): pass\n", "@import torch\n@MARK\ndef f(): pass\n"),
        ("@f\n@MARK\nclass K: pass\n", "@import torch\n@f\n@MARK\nclass K: pass\n"),
        ("@(\n    MARK\n)\nclass K: pass\n", "@import torch\n@(\n    MARK\n)\nclass K: pass\n"),
        ("import os\n@f\ndef g():\n    MARK\n", "import os\n@import torch\n@f\ndef g():\n    MARK\n"),
        ("\\\nMARK\n", "\\\n@import torch\nMARK\n"),
        ("\f\nMARK\n", "\f\n@import torch\nMARK\n"),
        # at the end of the file
        ("import os\ndef f(): MARK", "import os\n@import torch\ndef f(): MARK"),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_an_import_stands_after_the_imports_and_before_the_first_use(text: str, expected: str, newline: str) -> None:
    assert imported(text.replace("\n", newline)) == expected.replace("@import", "import").replace("\n", newline)


@pytest.mark.parametrize(
    "text",
    [
        '"""Doc."""; MARK\n',
        '"""Doc."""; x = 1; MARK\n',
        "from __future__ import division; MARK\n",
        '"""Doc."""\nfrom __future__ import division; MARK\n',
        "import os; x = [\n    1]; MARK\n",
    ],
)
def test_without_a_line_between_the_imports_and_the_first_use_it_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="no line between"):
        imported(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import os", "import os\nimport torch"),
        ("import os  # c", "import os  # c\nimport torch"),
        ("import os\n", "import os\nimport torch\n"),
        ("import os\n    ", "import os\nimport torch\n    "),
        ('"""Doc."""', '"""Doc."""\nimport torch'),
        ("# c", "# c\nimport torch"),
        ("# c\n", "# c\nimport torch\n"),
        ("", "import torch\n"),
        ("x = 1", "import torch\nx = 1"),
    ],
)
def test_the_end_of_the_file_stays_as_it_was(text: str, expected: str) -> None:
    assert with_needs(text, [TORCH]) == expected


def test_each_need_is_written_once_and_before_the_earliest_use() -> None:
    text = "import os\nx = 1\nimport sys\ny = 2\n"
    late, early = Need("import torch", before=text.index("y =")), Need("import torch", before=text.index("x ="))
    assert with_needs(text, [late]) == "import os\nx = 1\nimport sys\nimport torch\ny = 2\n"
    for needs in ([late, early], [early, late], [early, early], [TORCH, early]):
        assert with_needs(text, needs) == "import os\nimport torch\nx = 1\nimport sys\ny = 2\n"


def test_needs_at_one_point_stand_in_one_order_imports_first() -> None:
    device = Need('device = torch.device("cpu")', is_import=False)
    expected = 'import os\nimport torch\nfrom torch import nn\ndevice = torch.device("cpu")\nx = 1\n'
    for needs in ([device, TORCH, Need("from torch import nn")], [Need("from torch import nn"), TORCH, device]):
        found = with_needs("import os\nx = 1\n", needs)
        assert sorted(found.splitlines()) == sorted(expected.splitlines())
        assert found.splitlines()[-2:] == expected.splitlines()[-2:]
        assert found == with_needs("import os\nx = 1\n", list(reversed(needs)))


def test_needs_at_one_point_are_one_edit() -> None:
    source = Source("x.py", "import os\nx = 1\n")
    assert preludes(source, source.parse(), [TORCH, Need("import h5py")]) == (
        Edit(10, 10, "import h5py\nimport torch\n"),
    )


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_a_need_of_several_lines_has_the_files_line_ends(newline: str) -> None:
    need = Need("if FLAG:\n    x = 2", is_import=False)
    text = "import os\nFLAG = 1\n".replace("\n", newline)
    assert with_needs(text, [need]) == "import os\nif FLAG:\n    x = 2\nFLAG = 1\n".replace("\n", newline)


def test_nothing_needed_is_nothing_written() -> None:
    source = Source("x.py", "import os\n")
    assert preludes(source, source.parse(), []) == ()
