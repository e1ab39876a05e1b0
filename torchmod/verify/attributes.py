"""What an object of any class holds: its attributes, what it would be pickled as, what it says of itself."""

from __future__ import annotations

import ast
import pickle
import types
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from torchmod.verify.trace import Snapshot

CODE = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.MethodWrapperType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.WrapperDescriptorType,
    types.ModuleType,
    types.CodeType,
    type,
)
"""What is compared by its name: the code itself may have been rewritten."""
_BEHAVIOUR = (*CODE, property, classmethod, staticmethod, types.MemberDescriptorType, types.GetSetDescriptorType)
_BY_ADDRESS = frozenset({"_per_optimizer_states"})
"""Attributes of torch's own classes that are dictionaries by ``id``, which is another one in every run."""
_PARTS = ("maker", "arguments", "state", "elements", "pairs")
"""What ``__reduce_ex__`` gives."""


def is_own(kind: type) -> bool:
    """Whether the program or its setup made a class."""
    return kind.__module__ == "__main__"


def attributes(value: object) -> dict[str, Any]:
    """The public and the private attributes: those of the object, its slots, and the data of its own classes."""
    found: dict[str, Any] = {}
    for kind in reversed(type(value).__mro__):
        slots = [name for name, one in vars(kind).items() if isinstance(one, types.MemberDescriptorType)]
        with_value = [name for name in slots if not _is_special(name) and hasattr(value, name)]
        found |= class_data(kind) | {name: getattr(value, name) for name in with_value}
    held = getattr(value, "__dict__", {})
    if isinstance(held, Mapping):
        found |= {str(name): one for name, one in held.items() if not _is_special(str(name))}
    return {name: one for name, one in found.items() if name not in _BY_ADDRESS}


def class_data(kind: type) -> dict[str, Any]:
    """The attributes of a class of the program that are data, not code."""
    if not is_own(kind):
        return {}
    return {
        name: one
        for name, one in vars(kind).items()
        if not _is_special(name) and not name.startswith("_abc_") and not isinstance(one, _BEHAVIOUR)
    }


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def hidden(value: object, held: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a value has beside the attributes that it holds, as only its class knows; None when it cannot be told."""
    kind = type(value)
    plain = kind.__reduce__ is object.__reduce__ and kind.__reduce_ex__ is object.__reduce_ex__
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some kinds of iterators can be pickled for a while yet
            made = value.__reduce_ex__(4)
    except Exception:
        state = _state_dict(value)
        if state is not None:
            return {"state": state}
        text = _text(value)
        return None if text is None else {"text": text}
    if isinstance(made, str):
        return {"name": made}
    if plain and kind.__getstate__ is object.__getstate__ and not any(made[3:5]):  # the attributes are all
        return {}
    parts = dict(zip(_PARTS, made, strict=False))
    if isinstance(parts.get("state"), dict):
        beside = {name: one for name, one in parts["state"].items() if held.get(name, parts) is not one}
        parts["state"] = {name: one for name, one in beside.items() if name not in _BY_ADDRESS} or None
    for name, turn in (("elements", list), ("pairs", dict)):
        if parts.get(name) is not None:
            parts[name] = turn(parts[name])
    return {name: one for name, one in parts.items() if one is not None}


def _state_dict(value: object) -> object:
    """Its state as it tells it itself, if it does."""
    tell = getattr(value, "state_dict", None)
    try:
        return tell() if callable(tell) else None
    except Exception:
        return None


def _text(value: object) -> str | None:
    """What it says of itself, if that is more than where it lies in memory."""
    try:
        text = repr(value)
    except Exception:
        return None
    return None if " at 0x" in text else text


def key_name(key: Any) -> str:
    """The name of what a dictionary holds: of ``1`` and of ``"1"`` not the same one."""
    if not isinstance(key, str):
        return repr(key)
    if key.isidentifier() and key not in ("None", "True", "False"):
        return str(key)
    try:
        ast.literal_eval(key)
    except Exception:
        return str(key)
    return repr(key)


def unique(pairs: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Pairs whose names differ: keys may look the same."""
    seen: Counter[str] = Counter()
    found = []
    for name, one in pairs:
        seen[name] += 1
        found.append((name if seen[name] == 1 else f"{name} ({seen[name]})", one))
    return found


def code_facts(value: Any) -> tuple[str, str]:
    """The name of a function, class or module, and the meaning of its code as text, if it is the program's own."""
    name = str(getattr(value, "__qualname__", None) or getattr(value, "__name__", type(value).__name__))
    where = str(getattr(value, "__module__", None) or "")
    code = getattr(value, "__code__", None)
    own = where == "__main__" and isinstance(code, types.CodeType)
    return (name if where == "__main__" or not where else f"{where}.{name}"), (_meaning(code) if own else "")


def _meaning(code: Any) -> str:
    """Instructions, constants and names, but not the lines they stand on."""
    constants = [_meaning(one) if isinstance(one, types.CodeType) else repr(one) for one in code.co_consts]
    return f"{code.co_code.hex()} {constants} {code.co_names} {code.co_varnames} {code.co_freevars}"


def code_holds(value: Any) -> dict[str, Any]:
    """The data that a function of the program or a method carries with it, or that a class of the program has."""
    if isinstance(value, type):
        return class_data(value)
    if isinstance(value, types.ModuleType):
        return {}
    found: dict[str, Any] = {}
    held_by = getattr(value, "__self__", None)
    if held_by is not None and not isinstance(held_by, types.ModuleType):
        found["self"] = held_by
    if isinstance(value, types.FunctionType) and value.__module__ == "__main__":
        cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        found |= {name: cell.cell_contents for name, cell in cells if _is_filled(cell)}
        if value.__defaults__ or value.__kwdefaults__:
            found["defaults"] = [value.__defaults__, value.__kwdefaults__]
        found |= vars(value)
    return found


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def unseen(value: object, why: str = "") -> Snapshot:
    """The snapshot of what was not looked at."""
    return {"kind": "unseen", "type": type(value).__name__, "why": why}


def own_value(value: Any) -> Any:
    """A number or text of a class of the program, as one of Python's own."""
    base: Any = next(one for one in (int, float, complex, str, bytes) if isinstance(value, one))
    return base.__str__(value) if base is str else base(value)


def pickles(value: object) -> str:
    """Whether a value can be pickled: "yes", or the type of what it raises."""
    try:
        pickle.dumps(value)
    except Exception as error:
        return type(error).__name__
    return "yes"
