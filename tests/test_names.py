"""What a name means: every claim is also held against what the code does when it is run, with stand-ins for torch.

A claim that is wrong at run time is the worst bug there can be, a claim that is not made the second worst.
"""

import ast
import builtins
import contextlib
import random
import re
import sys
import textwrap
import types
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from torchmod.names import Names, Neighbours, Resolved, canonical

GENERIC = pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters came with Python 3.12")

# The world that the code of the tests runs in. `own` is a file of the repository, `unknown` is not.

MEMBERS: dict[str, dict[str, str]] = {
    "torch.nn.functional": {"mse_loss": "torch.nn.functional.mse_loss"},
    "torch.nn": {
        "MSELoss": "torch.nn.MSELoss",
        "L1Loss": "torch.nn.L1Loss",
        "functional": "torch.nn.functional",
    },
    "torch": {"nn": "torch.nn", "sum": "torch.sum", "super": "torch.super"},
    "own": {
        "MSELoss": "torch.nn.L1Loss",
        "L1Loss": "own:L1Loss",
        "nn": "torch.nn",
        "sum": "torch.sum",
    },
    "unknown": {"MSELoss": "unknown.MSELoss", "nn": "unknown.nn", "sum": "unknown.sum"},
}


class Near:
    """The neighbours of a file in that world."""

    def member(self, module: str, name: str) -> str | None:
        return MEMBERS["own"].get(name) if module == "own" else None

    def exports(self, module: str) -> Mapping[str, str] | None:
        return None if module == "unknown" else MEMBERS.get(module)

    def owns(self, module: str) -> bool:
        return False

    def inside(self, name: str) -> bool:
        return False


class Stand:
    """Stands in for something of torch: can be called, and its attributes can be set."""

    def __init__(self, qualified: str) -> None:
        self.qualified = qualified

    def __call__(self, *args: object, **kwargs: object) -> "Stand":
        return self


class Stop(BaseException):
    """The code goes on for too long."""


def world() -> dict[str, types.ModuleType]:
    modules: dict[str, types.ModuleType] = {}
    things: dict[str, object] = modules  # type: ignore[assignment]
    for name, members in MEMBERS.items():
        modules[name] = types.ModuleType(name)
        modules[name].__all__ = list(members)  # type: ignore[attr-defined]
        for member, qualified in members.items():
            setattr(modules[name], member, things.setdefault(qualified, Stand(qualified)))
    return {name: module for name, module in modules.items() if name in MEMBERS}


def probes(tree: ast.Module) -> list[ast.Call]:
    """The calls of ``probe``, in the order of a walk over the tree."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "probe"]


def happens(code: str, seed: int = 0) -> list[tuple[int, object]]:
    """Run the code: the number of each probe that is reached, with what its argument is."""
    tree = ast.parse(code)
    for number, call in enumerate(probes(tree)):
        call.args.insert(0, ast.copy_location(ast.Constant(number), call))
    modules, chance, seen = world(), random.Random(seed), list[tuple[int, object]]()

    def probe(number: int, value: object) -> object:
        seen.append((number, value))
        if len(seen) > 200:
            raise Stop
        return value

    def load(name: str, _g: object = None, _l: object = None, parts: object = (), _level: int = 0) -> types.ModuleType:
        if name not in modules:
            raise ImportError(name)
        return modules[name if parts else name.partition(".")[0]]

    inside = vars(builtins) | {"__import__": load, "probe": probe, "maybe": lambda: chance.random() < 0.5}
    inside |= {"decorate": lambda *_: lambda it: it, "base": lambda *_: object, "Manager": Manager}
    with contextlib.suppress(Exception, Stop):  # what was seen before counts
        exec(compile(tree, "<test>", "exec"), {"__builtins__": inside, "__name__": "main"})
    return seen


class Manager:
    """``with Manager(x) as y`` binds ``y`` to ``x``."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __enter__(self) -> object:
        return self.value

    def __exit__(self, *_: object) -> None:
        return None


def qualified_name(value: Any) -> str:
    if isinstance(value, Stand):
        return value.qualified
    if isinstance(value, types.ModuleType):
        return value.__name__
    if getattr(value, "__module__", "") == "main":
        return f":{value.__name__}"
    return f"builtins.{value.__name__}" if getattr(value, "__module__", "") == "builtins" else f"the value {value!r}"


def wrong_claims(code: str, seed: int = 0) -> list[str]:
    """Where a name is at run time what, without a doubt, it cannot be."""
    tree = ast.parse(code)
    nodes, names = [call.args[0] for call in probes(tree)], Names(tree, Near())
    wrong = []
    for number, value in happens(code, seed):
        claim = names.resolve(nodes[number])
        if claim.doubt or value is None:  # None can be neither called nor asked for an attribute
            continue
        # an attribute of an own class is not followed to its value
        of_own_class = any(name.startswith(":") and "." in name for name in claim.names)
        if qualified_name(value) not in claim.names and not of_own_class:
            wrong.append(f"line {nodes[number].lineno}: {qualified_name(value)}, not {sorted(claim.names)}")
    return wrong


def claim(code: str, near: Neighbours | None = None) -> Resolved:
    """What the last probe of the code is said to be; the code may run as well, and then no claim may be wrong."""
    code = textwrap.dedent(code).strip()
    for seed in range(4):
        assert wrong_claims(code, seed) == []
    tree = ast.parse(code)
    last = max(probes(tree), key=lambda call: (call.lineno, call.col_offset))
    return Names(tree, near or Near()).resolve(last.args[0])


MSE = "torch.nn.MSELoss"

CLAIMED = {
    "an import": ("import torch\nprobe(torch.nn.MSELoss)", MSE),
    "a submodule": ("import torch.nn.functional\nprobe(torch.nn.MSELoss)", MSE),
    "an import with an alias": ("import torch as t\nprobe(t.nn.MSELoss)", MSE),
    "a submodule with an alias": ("import torch.nn as n\nprobe(n.MSELoss)", MSE),
    "from a package": ("from torch import nn\nprobe(nn.MSELoss)", MSE),
    "from with an alias": ("from torch.nn import MSELoss as M\nprobe(M)", MSE),
    "an own module's re-export": ("from own import MSELoss\nprobe(MSELoss)", "torch.nn.L1Loss"),
    "through an own module": ("import own\nprobe(own.nn.MSELoss)", MSE),
    "another assignment": ("import torch.nn as nn\nLoss = nn.MSELoss\nL = Loss\nprobe(L)", MSE),
    "an annotated assignment": ("import torch.nn as nn\nL: type = nn.MSELoss\nprobe(L)", MSE),
    "a chain of targets": ("import torch.nn as nn\na = b = nn.MSELoss\nprobe(b)", MSE),
    "a tuple": ("import torch.nn as nn\na, b = nn.L1Loss, nn.MSELoss\nprobe(b)", MSE),
    "a list": ("import torch.nn as nn\n[a, b] = (nn.L1Loss, nn.MSELoss)\nprobe(b)", MSE),
    "both branches alike": ("import torch.nn as nn\nL = nn.MSELoss if maybe() else nn.MSELoss\nprobe(L)", MSE),
    "a walrus": ("import torch.nn as nn\n(L := nn.MSELoss)()\nprobe(L)", MSE),
    "a walrus on the spot": ("import torch.nn as nn\nprobe(L := nn.MSELoss)", MSE),
    "a walrus in a comprehension": ("import torch.nn as nn\n[L := nn.MSELoss for _ in '1']\nprobe(L)", MSE),
    "an import in a function": ("def f():\n    import torch.nn as nn\n    probe(nn.MSELoss)\nf()", MSE),
    "a failed import": (
        """
        try:
            import torch.nn as nn
        except ImportError:
            nn = None
        probe(nn.MSELoss)
        """,
        MSE,
    ),
    "a name set to None before": ("L = None\nfrom torch.nn import MSELoss as L\nprobe(L)", MSE),
    "a local of another function": (
        """
        import torch.nn as nn
        def f():
            nn = 1
        def g():
            probe(nn.MSELoss)
        f(), g()
        """,
        MSE,
    ),
    "a class attribute of the same name": (
        """
        import torch.nn as nn
        class A:
            nn = 1
            def m(self):
                probe(nn.MSELoss)
        A().m()
        """,
        MSE,
    ),
    "a loop variable of a comprehension": ("import torch.nn as nn\n[nn for nn in '1']\nprobe(nn.MSELoss)", MSE),
    "a parameter's default": ("import torch.nn as nn\ndef f(nn=probe(nn.MSELoss)): pass", MSE),
    "a lambda's default": ("import torch.nn as nn\nlambda nn=probe(nn.MSELoss): 1", MSE),
    "a decorator": ("import torch.nn as nn\n@decorate(probe(nn.MSELoss))\ndef f(nn): pass", MSE),
    "an annotation": ("import torch.nn as nn\ndef f(nn: probe(nn.MSELoss)) -> int: pass", MSE),
    "a return annotation": ("import torch.nn as nn\ndef f(nn) -> probe(nn.MSELoss): pass", MSE),
    "a base": ("import torch.nn as nn\nclass A(base(probe(nn.MSELoss))):\n    nn = 1", MSE),
    "a comprehension's first iterable": ("import torch.nn as nn\n[1 for nn in [probe(nn.MSELoss)]]", MSE),
    "a class body's first iterable": (
        """
        import torch
        class A:
            nn = torch.nn
            [1 for nn in [probe(nn.MSELoss)]]
        """,
        MSE,
    ),
    "a closure": (
        """
        def f():
            import torch.nn as nn
            def g():
                probe(nn.MSELoss)
            g()
        f()
        """,
        MSE,
    ),
    "a global from a function": (
        """
        def f():
            global nn
            import torch.nn as nn
        f()
        probe(nn.MSELoss)
        """,
        MSE,
    ),
    "a global under a local": (
        """
        import torch.nn as nn
        def f():
            nn = 1
            def g():
                global nn
                probe(nn.MSELoss)
            g()
        f()
        """,
        MSE,
    ),
    "a star import of torch": ("from torch.nn import *\nprobe(MSELoss)", MSE),
    "a star import of an own module": ("from own import *\nprobe(MSELoss)", "torch.nn.L1Loss"),
    "a star import that lacks the name": ("from torch.nn import MSELoss\nfrom torch import *\nprobe(MSELoss)", MSE),
    "an import after an unknown star": ("from unknown import *\nfrom torch.nn import MSELoss\nprobe(MSELoss)", MSE),
    "torch's star after an unknown one": ("from unknown import *\nfrom torch.nn import *\nprobe(MSELoss)", MSE),
    "a class that calls itself after an unknown star": (
        """
        from unknown import *
        class MSELoss(object):
            def m(self):
                probe(MSELoss)
        MSELoss().m()
        """,
        ":MSELoss",
    ),
    "a star import over a builtin": ("from torch import *\nprobe(sum)", "torch.sum"),
    "an import over a builtin": ("from torch import sum\nprobe(sum)", "torch.sum"),
    "a builtin": ("probe(sum)", "builtins.sum"),
    "super after an unknown star": ("from unknown import *\nprobe(super)", "builtins.super"),
    "an own function": ("def f(): pass\nprobe(f)", ":f"),
    "an own class": ("class A: pass\nprobe(A)", ":A"),
    "a class body that only annotates, in a function": (
        """
        from torch.nn import L1Loss as L
        def f():
            from torch.nn import MSELoss as L
            class A:
                L: type
                probe(L)
        f()
        """,
        "torch.nn.L1Loss",
    ),
    "a nonlocal that its function only declares": (
        """
        from torch.nn import MSELoss as L
        def f():
            L: type
            def g():
                nonlocal L
                from torch.nn import L1Loss as L
            g()
            probe(L)
        f()
        """,
        "torch.nn.L1Loss",
    ),
    "a nonlocal that is deleted": (
        """
        def f():
            from torch.nn import MSELoss as L
            def g():
                nonlocal L
                probe(L)
                del L
            g()
        f()
        """,
        MSE,
    ),
    "a class body that only deletes, in a function": (
        """
        from torch.nn import L1Loss as L
        def f():
            from torch.nn import MSELoss as L
            class A:
                try:
                    del L
                except NameError:
                    pass
                probe(L)
        f()
        """,
        "torch.nn.L1Loss",
    ),
    "what only a class body's dictionary hides": (
        "from torch.nn import MSELoss\nclass A:\n    locals()['MSELoss'] = 1\nprobe(MSELoss)",
        MSE,
    ),
    "a function that calls itself after an unknown star": (
        "from unknown import *\ndef MSELoss(x=0):\n    return x or probe(MSELoss)\nMSELoss()",
        ":MSELoss",
    ),
    "a global of the module itself": (
        "from unknown import *\nglobal MSELoss\nfrom torch.nn import MSELoss\nprobe(MSELoss)",
        MSE,
    ),
    "a local after an unknown star": (
        "from unknown import *\ndef f():\n    from torch.nn import MSELoss\n    probe(MSELoss)\nf()",
        MSE,
    ),
    "a deleted local of another function": (
        "import torch.nn as nn\ndef f():\n    nn = 1\n    del nn\nf()\nprobe(nn.MSELoss)",
        MSE,
    ),
}


@pytest.mark.parametrize("name", CLAIMED)
def test_a_name_is_claimed_through(name: str) -> None:
    code, expected = CLAIMED[name]
    assert claim(code).only == expected


UNCLAIMED = {
    "torch rebound": "import torch\ntorch = Manager(torch)\nprobe(torch.nn.MSELoss)",
    "torch rebound later, seen from a function": (
        """
        import torch
        def f():
            probe(torch.nn.MSELoss)
        import unknown as torch
        f()
        """
    ),
    "two imports": "from torch.nn import MSELoss\nfrom own import MSELoss\nprobe(MSELoss)",
    "two branches": "import torch.nn as nn\nL = nn.MSELoss if maybe() else nn.L1Loss\nprobe(L)",
    "one or another": "import torch.nn as nn\nL = nn.MSELoss or nn.L1Loss\nprobe(L)",
    "another import if the first fails": (
        """
        try:
            from torch.nn import MSELoss
        except ImportError:
            from own import MSELoss
        probe(MSELoss)
        """
    ),
    "a swap": "from torch.nn import MSELoss as a, L1Loss as b\na, b = b, a\nprobe(a)",
    "a starred value": "import torch.nn as nn\na, b = *[1], nn.MSELoss\nprobe(b)",
    "a starred target": "import torch.nn as nn\na, *b = nn.L1Loss, nn.MSELoss\nprobe(b)",
    "a starred target of nothing": "from torch.nn import MSELoss as b\na, *b = (1,)\nprobe(b)",
    "an assignment that cannot work": "from torch.nn import MSELoss as a\na, b = (1,)\nprobe(a)",
    "a nested target": "import torch.nn as nn\n(a, b), c = (nn.L1Loss, nn.L1Loss), nn.MSELoss\nprobe(c)",
    "an augmented assignment": "import torch.nn as nn\nnn += 1\nprobe(nn.MSELoss)",
    "a result": "import torch.nn as nn\nL = decorate(nn.MSELoss)(nn.L1Loss)\nprobe(L)",
    "a parameter": "import torch.nn as nn\ndef f(nn):\n    probe(nn.MSELoss)\nf(nn)",
    "a parameter of a lambda": "import torch.nn as nn\n(lambda nn: probe(nn.MSELoss))(nn)",
    "more parameters": "import torch.nn as nn\ndef f(*nn):\n    probe(nn)\nf(nn)",
    "named parameters": "import torch.nn as nn\ndef f(**nn):\n    probe(nn)\nf()",
    "a parameter by place": "import torch.nn as nn\ndef f(nn, /):\n    probe(nn)\nf(1)",
    "a parameter by name": "import torch.nn as nn\ndef f(*, nn):\n    probe(nn)\nf(nn=1)",
    "a local": "import torch.nn as nn\ndef f():\n    nn = Manager(1)\n    probe(nn.MSELoss)\nf()",
    "a local that is bound below": "import torch.nn as nn\ndef f():\n    probe(nn)\n    nn = Manager(1)\nf()",
    "a local without a value": "import torch.nn as nn\ndef f():\n    nn: int\n    probe(nn)\nf()",
    "a loop": "import torch.nn as nn\nfor nn in [1]:\n    probe(nn)",
    "a loop's leftover": "import torch.nn as nn\nfor nn in [1]: pass\nprobe(nn)",
    "a context manager": "import torch.nn as nn\nwith Manager(1) as nn:\n    probe(nn)",
    "an exception": (
        """
        import torch.nn as nn
        try:
            raise KeyError
        except KeyError as nn:
            probe(nn)
        """
    ),
    "a builtin back after an exception": (
        """
        from torch import sum
        try:
            raise KeyError
        except KeyError as sum:
            pass
        probe(sum)
        """
    ),
    "a pattern": "import torch.nn as nn\nmatch 1:\n    case nn:\n        probe(nn)",
    "a pattern's rest": "import torch.nn as nn\nmatch {1: 2}:\n    case {1: 2, **nn}:\n        probe(nn)",
    "a pattern's star": "import torch.nn as nn\nmatch [1]:\n    case [*nn]:\n        probe(nn)",
    "a pattern's alias": "import torch.nn as nn\nmatch [1]:\n    case [1 as nn]:\n        probe(nn)",
    "a comprehension's variable": "import torch.nn as nn\n[probe(nn) for nn in [1]]",
    "a second iterable": "import torch.nn as nn\n[1 for nn in [1] for _ in [probe(nn)]]",
    "a condition": "import torch.nn as nn\n[1 for nn in [1] if probe(nn)]",
    "a dictionary's": "import torch.nn as nn\n{nn: probe(nn) for nn in [1]}",
    "a generator's": "import torch.nn as nn\nlist(probe(nn) for nn in [1])",
    "a walrus in a comprehension of a function": (
        """
        import torch.nn as nn
        def f():
            [nn := 1 for _ in '1']
            probe(nn)
        f()
        """
    ),
    "a class": "import torch.nn as nn\nclass nn: pass\nprobe(nn.MSELoss)",
    "a function": "from torch.nn import MSELoss\ndef MSELoss(): pass\nprobe(MSELoss)",
    "a definition in a branch": "from torch.nn import MSELoss\nif maybe():\n    def MSELoss(): pass\nprobe(MSELoss)",
    "a global that a function binds": (
        """
        import torch.nn as nn
        def f():
            global nn
            nn = Manager(1)
        f()
        probe(nn)
        """
    ),
    "a global that a class binds": ("import torch.nn as nn\nclass A:\n    global nn\n    nn = Manager(1)\nprobe(nn)"),
    "a nonlocal that is bound before the function's own": (
        """
        def f():
            def g():
                nonlocal L
                from torch.nn import L1Loss as L
            from torch.nn import MSELoss as L
            g()
            probe(L)
        f()
        """
    ),
    "a nonlocal of a function two levels up": (
        """
        def f():
            from torch.nn import MSELoss as L
            def g():
                def h():
                    nonlocal L
                    from torch.nn import L1Loss as L
                h()
            g()
            probe(L)
        f()
        """
    ),
    "a nonlocal of a class body": (
        """
        def f():
            from torch.nn import MSELoss as L
            class A:
                nonlocal L
                from torch.nn import L1Loss as L
            probe(L)
        f()
        """
    ),
    "a class body before its own binding, in a function": (
        """
        from torch.nn import L1Loss as L
        def f():
            from torch.nn import MSELoss as L
            class A:
                probe(L)
                from torch.nn import MSELoss as L
        f()
        """
    ),
    "a class body after del": (
        """
        from torch.nn import L1Loss as L
        class A:
            from torch.nn import MSELoss as L
            del L
            probe(L)
        """
    ),
    "a class body before its own binding of a builtin": "class A:\n    probe(sum)\n    from torch import sum",
    "a class body before its own binding, after a star": (
        """
        from own import *
        class A:
            probe(MSELoss)
            from torch.nn import MSELoss
        """
    ),
    "a builtin before it is imported": "probe(sum)\nfrom torch import sum",
    "a builtin before a star import": "probe(sum)\nfrom torch import *",
    "a builtin in the statement that hides it": "import torch\nsum = (\n    probe(sum) and torch.sum)",
    "a builtin that may be imported": "if maybe():\n    from torch import sum\nprobe(sum)",
    "a builtin that a star may bring": "if maybe():\n    from torch import *\nprobe(sum)",
    "a builtin back after del": "from torch import sum\ndel sum\nprobe(sum)",
    "a builtin back after del in a function": (
        """
        from torch import sum
        def f():
            global sum
            del sum
        f()
        probe(sum)
        """
    ),
    "a builtin after an unknown star": "from unknown import *\nprobe(sum)",
    "an import over a builtin that stars leave alone": (
        "from torch.nn import MSELoss as len\nfrom unknown import *\nprobe(len)"
    ),
    "a name after an unknown star": "from torch.nn import MSELoss\nfrom unknown import *\nprobe(MSELoss)",
    "a name between two imports": ("from own import *\nprobe(MSELoss)\nfrom torch.nn import MSELoss\nprobe(MSELoss)"),
    "a name in a function before the import": (
        "from unknown import *\ndef f(): probe(MSELoss)\nf()\nfrom torch.nn import MSELoss"
    ),
    "an import that only a function makes, after a star": (
        """
        from unknown import *
        def f():
            global MSELoss
            from torch.nn import MSELoss
        probe(MSELoss)
        """
    ),
    "an import in a branch after a star": (
        "from own import *\nif maybe():\n    from torch.nn import MSELoss\nprobe(MSELoss)"
    ),
    "a class body that uses the star's name of the class": ("from own import *\nclass MSELoss:\n    probe(MSELoss)"),
    "a default that uses the star's name of the function": (
        "from own import *\ndef MSELoss(\n    x=probe(MSELoss)): pass"
    ),
    "a lambda in a class body that uses the star's name of the class": (
        "from own import *\nclass MSELoss:\n    (lambda: probe(MSELoss))()"
    ),
    "a method called in a class body that uses the star's name of the class": (
        "from own import *\nclass MSELoss:\n    def m(): probe(MSELoss)\n    m()"
    ),
    "a method of an inner class that uses the star's name of a later class": (
        """
        from own import *
        class A:
            class MSELoss:
                def m(self):
                    probe(MSELoss)
        A.MSELoss().m()
        class MSELoss: pass
        """
    ),
    "two stars": "from torch.nn import *\nfrom own import *\nprobe(MSELoss)",
    "a dictionary of globals": "from torch.nn import MSELoss\nglobals()['MSELoss'] = 1\nprobe(MSELoss)",
    "a dictionary of globals in a function": (
        "from torch.nn import MSELoss\ndef f():\n    globals()['MSELoss'] = 1\nf()\nprobe(MSELoss)"
    ),
    "more names of globals at once": ("from torch.nn import MSELoss\nglobals().update(MSELoss=1)\nprobe(MSELoss)"),
    "a dictionary of globals kept for later": (
        "from torch.nn import MSELoss\ng = globals()\ng['MSELoss'] = 1\nprobe(MSELoss)"
    ),
    "code in a string": "from torch.nn import MSELoss\nexec('MSELoss = 1')\nprobe(MSELoss)",
    "a module's dictionary": "import torch.nn as nn\nnn.__dict__['MSELoss'] = 1\nprobe(nn.MSELoss)",
    "a module's variables": "import torch.nn as nn\nvars(nn)['MSELoss'] = 1\nprobe(nn.MSELoss)",
    "a dictionary of a class body": (
        "from torch.nn import MSELoss\nclass A:\n    locals()['MSELoss'] = 1\n    probe(MSELoss)"
    ),
    "a private name": (
        """
        from torch.nn import L1Loss as __L, MSELoss as _A__L
        class A:
            def m(self):
                probe(__L)
        A().m()
        """
    ),
    "a name defined by itself": "import torch.nn as nn\nnn = nn if maybe() else nn\nprobe(nn.MSELoss)",
    "what every module is given": "probe(__name__)",
    "a name that is nowhere": "probe(nn.MSELoss)",
    "an attribute that is replaced": "import torch.nn as nn\nnn.MSELoss = nn.L1Loss\nprobe(nn.MSELoss)",
    "an attribute that is replaced further down": (
        """
        import torch.nn as nn
        def f():
            probe(nn.MSELoss)
        nn.MSELoss = nn.L1Loss
        f()
        """
    ),
    "a module that is replaced": "import torch, unknown\ntorch.nn = unknown\nprobe(torch.nn.MSELoss)",
    "a module that is replaced before its alias": (
        "import torch, unknown\ntorch.nn = unknown\nfrom torch import nn\nprobe(nn.MSELoss)"
    ),
    "an import of what is replaced": "import torch\ntorch.nn.MSELoss = 1\nfrom torch.nn import MSELoss\nprobe(MSELoss)",
    "a star import of what is replaced": "import torch\ntorch.nn.MSELoss = 1\nfrom torch.nn import *\nprobe(MSELoss)",
    "what an own module is told to re-export": (
        "import own, torch\nown.MSELoss = torch.nn.MSELoss\nprobe(own.MSELoss)"
    ),
    "an own module's re-export of what is replaced": (
        "import torch\ntorch.nn.L1Loss = 1\nfrom own import MSELoss\nprobe(MSELoss)"
    ),
    "a module in a module that is replaced": (
        "import torch, unknown\ntorch.nn = unknown\nimport torch.nn.functional as F\nprobe(F.mse_loss)"
    ),
    "a star import of that": "import own, torch\nown.sum = torch.nn\nfrom own import *\nprobe(sum)",
    "an attribute that is deleted": "import torch.nn as nn\nprobe(nn.MSELoss)\ndel nn.MSELoss",
    "an attribute set by setattr": "import torch.nn as nn\nsetattr(nn, 'MSELoss', nn.L1Loss)\nprobe(nn.MSELoss)",
    "attributes set by setattr in a loop": (
        "import torch.nn as nn\nfor n in ['MSELoss']: setattr(nn, n, nn.L1Loss)\nprobe(nn.MSELoss)"
    ),
    "an attribute that a loop assigns": "import torch.nn as nn\nfor nn.MSELoss in [1]: pass\nprobe(nn.MSELoss)",
    "an attribute that is replaced through an alias": (
        "import torch.nn as nn\nN = nn.functional\nN.mse_loss = nn.L1Loss\nprobe(N.mse_loss)"
    ),
    "an attribute that is replaced through a chain of aliases": (
        "import torch.nn as a0\n"
        + "".join(f"a{n + 1} = a{n}\n" for n in range(30))
        + "a30.MSELoss = 1\nprobe(a0.MSELoss)"
    ),
    "an attribute that is replaced through aliases in a circle": (
        """
        import torch.nn as nn
        b = None
        a = b or nn
        b = a
        a.functional = 1
        b.MSELoss = 1
        probe(nn.MSELoss)
        """
    ),
    "a builtin that is replaced": "import builtins\nbuiltins.sum = 1\nprobe(sum)",
    "a class whose constructor is replaced": "import torch.nn as nn\nnn.MSELoss.__init__ = 1\nprobe(nn.MSELoss)",
}


@pytest.mark.parametrize("name", UNCLAIMED)
def test_nothing_is_claimed_of(name: str) -> None:
    assert claim(UNCLAIMED[name]).only is None


@pytest.mark.parametrize(
    "code",
    [
        "from torch.nn import MSELoss as T\ndef f[T](x: probe(T)): pass",
        "from torch.nn import MSELoss as T\ndef f[T]() -> probe(T): pass",
        "from torch.nn import MSELoss as T\ndef f[T]():\n    probe(T)\nf()",
        "from torch.nn import MSELoss as T\nclass A[T](base(probe(T))): pass",
        "from torch.nn import MSELoss as T\nclass A[T]:\n    probe(T)",
        "from torch.nn import MSELoss as T\nclass A[T]:\n    def m(self):\n        probe(T)\nA().m()",
        "from torch.nn import MSELoss as T\ntype X[T] = probe(T)\nX.__value__",
        "from torch.nn import MSELoss as X\ntype X = int\nprobe(X)",
        "from torch.nn import MSELoss as S\ndef f[S, T: probe(S)](): pass\nf.__type_params__[1].__bound__",
        # a class is seen from the type parameters that stand in it
        "from torch.nn import L1Loss as L\ndef f():\n    from torch.nn import MSELoss as L\n    class A:\n"
        "        global L\n        L = 1\n        def m[T](self, x: probe(L)): pass\nf()",
        "from torch.nn import MSELoss as L\nclass A:\n    L = 1\n    def m[T](self, x: probe(L)): pass",
        "from torch.nn import MSELoss as L\nclass A:\n    L = 1\n    type X[T] = probe(L)\nA.X.__value__",
    ],
)
@GENERIC
def test_type_parameters_hide_names(code: str) -> None:
    assert claim(code).only is None


@pytest.mark.parametrize(
    "code",
    [
        "from torch.nn import MSELoss as T\n@decorate(probe(T))\ndef f[T](): pass",
        "from torch.nn import MSELoss as T\ndef f[T](x=probe(T)): pass",
        "from torch.nn import MSELoss as T\n@decorate(probe(T))\nclass A[T]: pass",
        "from torch.nn import MSELoss as T\ndef f[T](): pass\nprobe(T)",
        "from torch.nn import MSELoss\ntype X[T] = probe(MSELoss)\nX.__value__",
        "class A:\n    from torch.nn import MSELoss\n    def m[T](self, x: probe(MSELoss)): pass",
        "from torch.nn import MSELoss\ndef f[T: probe(MSELoss)](): pass\nf.__type_params__[0].__bound__",
    ],
)
@GENERIC
def test_type_parameters_hide_nothing_outside(code: str) -> None:
    assert claim(code).only == MSE


# Programs made by chance: no claim about them may be wrong when they run. (No class has a `nonlocal`: with a
# comprehension over that name it crashes Python 3.13.0.)

NAMES = ("MSELoss", "L1Loss", "nn", "sum")
SIMPLE = (
    "{n}",
    "{n}",
    "{n}.{n}",
    "t.nn.MSELoss",
    "t.nn.L1Loss",
    "t.nn",
    "own.{n}",
    "1",
    "probe({n})",
    "probe({n}.{n})",
)
EXPRESSIONS = (
    *SIMPLE,
    *("({e} if maybe() else {e})", "({e} or {e})", "({n} := {e})", "[{e} for {n} in [{e}] if probe({n})]"),
    *("list(probe({n}) for {n} in [{e}] for {n} in [{e}])", "[({n} := {e}) for {n} in [{e}]]"),
    *("(lambda {n}: {e})({e})", "(lambda {n}={e}: probe({n}))()", "(lambda: probe({n}))()"),
)
STATEMENTS = (
    *("probe({n})", "probe({n})", "probe({n}.{n})", "probe({e})", "{n} = {e}", "{n} = {e}", "{n} = {n} = {e}"),
    *("{n}, {n} = {e}, {e}", "{n}: int", "{n}: probe({n}) = {e}", "del {n}", "{n} = None", "t.nn.{n} = {e}"),
    *("from torch.nn import MSELoss as {n}", "from torch.nn import L1Loss", "import torch.nn as {n}", "own.{n} = {e}"),
    *("from torch import nn", "from torch import sum", "from own import {n}", "from own import nn as {n}"),
)
COMPOUND = (
    *("if maybe():{b}\nelse:{b}", "for {n} in [{e}]:{b}", "with Manager({e}) as {n}:{b}"),
    *("try:{b}\n    raise KeyError\nexcept KeyError as {n}:{b}", "match {e}:\n    case {n}:\n        probe({n})"),
    *("try:\n    from missing import x as {n}\nexcept ImportError:{b}", "def {n}({n}={e}):{b}"),
    *("def f{k}({n}={e}):{b}\nf{k}()", "def f{k}(*{n}):{b}\nf{k}()", "def f{k}() -> probe({n}):{b}\nf{k}()"),
    *("def f{k}():\n    global {n}{b}\nf{k}()", "def f{k}():\n    nonlocal {n}{b}\nf{k}()"),
    *("def f{k}():{b}\n    def g{k}():\n        nonlocal {n}\n        {n} = {e}\n    g{k}(){b}\nf{k}()",),
    *("@decorate(probe({n}))\nclass C{k}(base(probe({n}))):{b}", "class {n}:{b}", "class C{k}:\n    global {n}{b}"),
    *("class C{k}:{b}\n    def m{k}(self):{d}\nC{k}().m{k}()",),
)
GENERIC_COMPOUND = (
    *("def f{k}[{n}]({n}: probe({n}) = probe({n})):{b}\nf{k}()", "class C{k}[{n}](base(probe({n}))):{b}"),
    *("class C{k}[{n}]:{b}\n    def m{k}[{n}](self, x: probe({n}) = 1):{d}\nC{k}().m{k}()",),
)
STARS = ("from torch.nn import *", "from torch import *", "from own import *", "from unknown import *")


class Programs:
    """Grows a program from the templates above."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._count = 0
        self._compound = COMPOUND + (GENERIC_COMPOUND if sys.version_info >= (3, 12) else ())

    def program(self) -> str:
        lines = ["import torch as t, own"]
        for _ in range(self._random.randint(3, 8)):
            star = self._random.random() < 0.15
            lines.append(self._random.choice(STARS) if star else self._statement(0))
        return "\n".join([*lines, self._guarded("probe({n})"), self._guarded("probe({n})")])

    def _statement(self, depth: int) -> str:
        if depth < 3 and self._random.random() < 0.4:
            return self._filled(self._random.choice(self._compound), depth)
        template = self._random.choice(STATEMENTS)
        return self._guarded(template) if self._random.random() < 0.7 else self._filled(template, 0)

    def _guarded(self, template: str) -> str:
        return f"try: {self._filled(template, 0)}\nexcept Exception: pass"

    def _filled(self, template: str, depth: int) -> str:
        self._count += 1
        number = self._count

        def fill(hole: re.Match[str]) -> str:
            match hole[1]:
                case "k":
                    return str(number)
                case "n":
                    return self._random.choice(NAMES)
                case "e":
                    return self._filled(self._random.choice(EXPRESSIONS if depth < 3 else SIMPLE), depth + 1)
            lines = [self._statement(depth + 1) for _ in range(self._random.randint(1, 3))]
            indent = "\n" + ("    " if hole[1] == "b" else "        ")
            return indent + "\n".join(lines).replace("\n", indent)

        return re.sub(r"\{(\w)\}", fill, template)


def programs(seeds: range) -> Iterator[tuple[int, str]]:
    for seed in seeds:
        code = Programs(seed).program()
        try:
            compile(code, "<test>", "exec")
        except SyntaxError:  # such as a nonlocal without a function around
            continue
        yield seed, code


def test_no_claim_about_programs_made_by_chance_is_wrong_when_they_run() -> None:
    tried = 0
    for seed, code in programs(range(1500)):
        assert wrong_claims(code, seed) == [], f"seed {seed}\n{code}"
        tried += 1
    assert tried > 400


# Questions besides `resolve`


def names_of(code: str, near: Neighbours | None = None) -> Names:
    return Names(ast.parse(textwrap.dedent(code).strip()), near or Near())


def loads(names: Names, name: str) -> list[ast.Name]:
    found = [
        n for n in ast.walk(names.tree) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)
    ]
    return sorted(found, key=lambda node: (node.lineno, node.col_offset))


@pytest.mark.parametrize(
    ("code", "doubt"),
    [
        ("def f(nn):\n    probe(nn.MSELoss)", "`nn` is a parameter of `f` (line 1)"),
        ("lambda nn: probe(nn.MSELoss)", "`nn` is a parameter of a lambda (line 1)"),
        ("for nn in x: pass\nprobe(nn)", "`nn` is assigned something that is not followed (line 1)"),
        ("from unknown import *\nprobe(nn)", "`from unknown import *` (line 1) may define `nn`"),
        ("import torch\ntorch.nn.L = 1\nprobe(torch.nn.L)", "`torch.nn.L` is replaced on line 2"),
        ("probe(nn.MSELoss)", "`nn` is not defined in this file"),
        ("nn = nn\nprobe(nn)", "`nn` is defined by itself"),
        ("try: pass\nexcept E as nn: pass\nprobe(nn)", "`nn` is bound by a pattern or an exception (line 2)"),
        ("nn = None\nprobe(nn)", "it is the result of an expression"),
        ("probe(f())", "it is the result of an expression"),
        ("from torch.nn import L\nglobals()['L'] = 1\nprobe(L)", "`L` is assigned through `globals()` (line 2)"),
    ],
)
def test_a_doubt_says_why(code: str, doubt: str) -> None:
    assert claim(code).doubt == doubt


def test_all_meanings_are_told() -> None:
    found = claim("import torch.nn as nn\nL = nn.MSELoss\nif maybe():\n    L = nn.L1Loss\nprobe(L)")
    assert (found.names, found.doubt, found.only) == ({"torch.nn.MSELoss", "torch.nn.L1Loss"}, "", None)


def test_names_are_known_besides_a_doubt() -> None:
    found = claim("from torch.nn import MSELoss\nfrom unknown import *\nprobe(MSELoss)")
    assert (found.names, found.only) == ({"torch.nn.MSELoss"}, None)


@pytest.mark.parametrize(
    ("name", "public"),
    [
        ("torch.nn.modules.loss.MSELoss", "torch.nn.MSELoss"),
        ("torch.nn.modules.MSELoss", "torch.nn.MSELoss"),
        ("torch.nn.modules.loss.MSELoss.forward", "torch.nn.MSELoss.forward"),
        ("torch.nn.modules.loss._Loss", "torch.nn.modules.loss._Loss"),
        ("torch.nn.functional.mse_loss", "torch.nn.functional.mse_loss"),
        ("own.torch.nn.modules.loss.MSELoss", "own.torch.nn.modules.loss.MSELoss"),
        ("torch.nn.modules", "torch.nn.modules"),
    ],
)
def test_the_public_name_of_what_torch_keeps_deeper(name: str, public: str) -> None:
    assert canonical(name) == public


def test_the_public_name_is_the_same_object_in_the_installed_torch() -> None:
    torch = pytest.importorskip("torch", reason="compares with an installed torch")
    seen = 0
    for path in [name for name in sys.modules if name.startswith("torch.nn.modules")]:
        for name, value in vars(sys.modules[path]).items():
            public = canonical(f"{path}.{name}")
            if public.startswith("torch.nn.modules") or not hasattr(torch.nn, name):
                continue
            assert getattr(torch.nn, name) is value, (path, name)
            seen += 1
    assert seen > 100


def test_what_is_replaced_is_known_by_its_public_name() -> None:
    assert claim("import torch.nn as nn\nnn.modules.loss.MSELoss = 1\nprobe(nn.MSELoss)").only is None


@pytest.mark.parametrize(
    "call",
    ["monkeypatch.setattr(nn, 'MSELoss', L)", "mock.patch.object(nn, 'MSELoss')", "mock.patch('torch.nn.MSELoss')"],
)
def test_what_a_test_patches_is_not_claimed(call: str) -> None:
    assert claim(f"import torch.nn as nn\n{call}\nprobe(nn.MSELoss)").only is None
    assert claim(f"import torch.nn as nn\n{call}\nprobe(nn.L1Loss)").only == "torch.nn.L1Loss"


@pytest.mark.parametrize(
    ("code", "defined"),
    [
        ("class A: pass\nA", True),
        ("def A(): pass\nA", True),
        ("from unknown import *\nclass A: pass\nA", True),
        ("class A: pass\nB = A\nB", False),
        ("class A: pass\nclass A: pass\nA", False),
        ("class A: pass\nfrom unknown import *\nA", False),
        ("class A: pass\nA.__init__ = f\nA", False),
        ("class A: pass\ndel A\nA", False),
        ("if x:\n    class A: pass\nA", True),
        ("import A\nA", False),
    ],
)
def test_a_definition_is_the_only_thing_that_a_name_can_mean(code: str, defined: bool) -> None:
    names = names_of(code)
    last = names.tree.body[-1]
    assert isinstance(last, ast.Expr)
    found = names.definition(last.value)
    assert (found is not None) == defined
    assert found is None or found.name == "A"


def test_only_a_bare_name_has_a_definition() -> None:
    names = names_of("class A: pass\nx.A")
    assert names.definition(names.attributes[0]) is None


def test_a_name_is_bound_where_a_scope_around_it_binds_it() -> None:
    code = """
        import a
        def f(b):
            [c for c in b]
            return a, b, c, sum, __file__
        class D:
            e = 1
            def m(self):
                return e, D
    """
    names = names_of(code)
    assert {
        name: names.is_bound(loads(names, name)[-1]) for name in ("a", "b", "sum", "__file__", "D")
    } == dict.fromkeys(("a", "b", "sum", "__file__", "D"), True)
    assert [names.is_bound(node) for node in loads(names, "c")] == [True, False]
    assert not names.is_bound(loads(names, "e")[0])


def test_any_name_may_be_bound_by_a_star_import() -> None:
    names = names_of("from unknown import *\nnn")
    assert names.is_bound(loads(names, "nn")[0])


def test_a_name_is_free_where_nothing_in_the_file_binds_or_uses_it() -> None:
    names = names_of("import a.b as c\ndef f(d):\n    for e in g: h.i = 1\n    del j")
    taken = {name for name in "abcdefghijk" if not names.is_free(name)}
    assert taken == set("cfdeghj")


def test_the_lines_that_bind_a_name() -> None:
    names = names_of("a = 1\ndef f():\n    a = 2\n    return a\nif a:\n    import a")
    assert names.lines_of(loads(names, "a")[0]) == [3]
    assert names.lines_of(loads(names, "a")[1]) == [1, 6]


def test_the_statement_and_what_is_around_a_node() -> None:
    names = names_of("class A:\n    def f(self):\n        x = [a(b) for b in c]\n")
    node = loads(names, "a")[0]
    statement, function = names.statement(node), names.enclosing(node, ast.FunctionDef | ast.Lambda)
    assert isinstance(statement, ast.Assign)
    assert isinstance(function, ast.FunctionDef)
    assert names.enclosing(function, ast.ClassDef) is names.tree.body[0]
    assert names.enclosing(function, ast.Lambda) is None
    assert names.scope_made_by(function).bindings.keys() == {"self", "x"}
    assert names.scope_of(function) is names.scope_made_by(names.tree.body[0])


def test_calls_and_attributes_are_those_that_are_read() -> None:
    names = names_of("@a.b\ndef f(x=c(d.e)):\n    g.h = f'{i(j)}'\ndel k.l\n")
    assert sorted(ast.unparse(call) for call in names.calls) == ["c(d.e)", "i(j)"]
    assert sorted(ast.unparse(attribute) for attribute in names.attributes) == ["a.b", "d.e"]


@pytest.mark.parametrize(
    ("code", "exported"),
    [
        ("import a, b.c\nfrom d import e as f\nclass G: pass\n_h = 1", {"a", "b", "f", "G"}),
        ("__all__ = ['a', '_b']\nimport a, c\n_b = 1", {"a", "_b"}),
        ("__all__ = ('a',)", {"a"}),
        ("__all__ = []", set()),
        ("a: int\nb: int = 1", {"b"}),
        ("__all__ = ['a']\n__all__ += ['b']", None),
        ("__all__ = ['a']\n__all__.append('b')", None),
        ("__all__ = ['a']\nfrom b import __all__", None),
        ("__all__ = [n for n in dir()]", None),
        ("__all__ = ['a', b]", None),
        ("__all__ = ['a']\nif x:\n    __all__ = ['b']", None),
        ("if x:\n    __all__ = ['b']", None),
        ("from unknown import *\na = 1", None),
        ("from torch.nn import *\na = 1", {"a", "MSELoss", "L1Loss", "functional"}),
        ("from unknown import *\n__all__ = ['a']", {"a"}),
    ],
)
def test_what_a_star_import_of_a_file_binds(code: str, exported: set[str] | None) -> None:
    assert names_of(code).exported() == exported


# No recursion, no more than linear time


class Shallow:
    """Only so many more frames are allowed inside."""

    def __enter__(self) -> None:
        self._limit = sys.getrecursionlimit()
        frame, depth = sys._getframe(), 0
        while frame.f_back is not None:
            frame, depth = frame.f_back, depth + 1
        sys.setrecursionlimit(depth + 150)

    def __exit__(self, *_: object) -> None:
        sys.setrecursionlimit(self._limit)


PLACE = {"lineno": 1, "col_offset": 0, "end_lineno": 1, "end_col_offset": 0}


def test_a_chain_of_5000_attributes_and_calls_is_no_recursion() -> None:
    attributes: ast.expr = ast.Name("torch", ast.Load(), **PLACE)
    calls: ast.expr = ast.Name("torch", ast.Load(), **PLACE)
    for _ in range(5000):
        attributes = ast.Attribute(attributes, "a", ast.Load(), **PLACE)
        calls = ast.Call(ast.Attribute(calls, "a", ast.Load(), **PLACE), [], [], **PLACE)
    tree = ast.parse("import torch")
    tree.body += [ast.Expr(attributes, **PLACE), ast.Expr(calls, **PLACE)]
    with Shallow():
        names = Names(tree)
        found, called = names.resolve(attributes), names.resolve(calls)
    assert found.only == "torch" + ".a" * 5000
    assert called.only is None
    assert len(names.calls) == 5000


def test_5000_branches_of_an_if_are_no_recursion() -> None:
    inner = ast.parse("probe(torch)").body
    last = inner[0]
    for _ in range(5000):
        inner = [ast.If(ast.Name("a", ast.Load(), **PLACE), [ast.Pass(**PLACE)], inner, **PLACE)]
    tree = ast.parse("import torch")
    tree.body += inner
    assert isinstance(last, ast.Expr)
    assert isinstance(last.value, ast.Call)
    with Shallow():
        names = Names(tree)
        assert names.qualified(last.value.args[0]) == "torch"
        assert names.statement(last.value.args[0]) is last


@pytest.mark.parametrize(
    "around",
    [
        lambda inner, other: ast.IfExp(other, inner, other, **PLACE),
        lambda inner, other: ast.BoolOp(ast.Or(), [other, inner], **PLACE),
        lambda inner, other: ast.NamedExpr(ast.Name("b", ast.Store(), **PLACE), inner, **PLACE),
    ],
    ids=["conditional", "or", "walrus"],
)
@pytest.mark.parametrize(("depth", "expected"), [(10, "torch"), (1000, None)])
def test_deep_expressions_are_given_up_without_recursion(around: Any, depth: int, expected: str | None) -> None:
    expression: ast.expr = ast.Name("torch", ast.Load(), **PLACE)
    for _ in range(depth):
        expression = around(expression, ast.Name("torch", ast.Load(), **PLACE))
    tree = ast.parse("import torch")
    tree.body.append(ast.Expr(expression, **PLACE))
    with Shallow():
        assert Names(tree).qualified(expression) == expected


def test_a_long_chain_of_aliases_is_given_up_without_recursion() -> None:
    names = names_of("import torch\na0 = torch\n" + "".join(f"a{n + 1} = a{n}\n" for n in range(3000)))
    with Shallow():
        assert names.resolve_in_module("a3000").only is None
        assert names.resolve_in_module("a5").only == "torch"


def test_names_that_are_defined_by_each_other_take_linear_time() -> None:
    size = 3000  # where each pair were tried, this would take minutes
    code = "".join(f"a{n} = b{n * 7 % size} or a{(n + 1) % size}\n" for n in range(size))
    code += "".join(f"b{n} = a{n * 3 % size} if c else b{n * 5 % size}\n" for n in range(size))
    names = names_of(code)
    with Shallow():
        assert not any(names.resolve_in_module(f"{letter}{n}").only for letter in "ab" for n in range(size))
