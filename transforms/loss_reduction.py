"""Replace the loss arguments `size_average` and `reduce` by `reduction`.

Since torch 0.4.1 a loss takes one string, `reduction`, in place of the two flags. Today's torch still obeys the flags,
with a warning on every call, and where one of them is set it wins over `reduction`. `reduce=False` gives "none"
whatever the other says, else `size_average=False` gives "sum" and everything else "mean"; a flag of None is not set.
Flags given by position are found by each loss's own signature, and so are those that a subclass passes on to
`super().__init__`. The name that only torch 0.4.1 had, "elementwise_mean", becomes "mean".

Safe where the flags are written out, or are expressions that can only be True or False. A flag that is some other
expression becomes a conditional, and that is unsafe: None counts as True there. What has a `size_average` of its own,
such as a focal loss of yours or the SSIM of another library, is left.
"""

import ast
from collections.abc import Iterator, Sequence

from torchmod.api import Call, Finding, Operand, signatures, transform

FLAGS = ("size_average", "reduce")
OLD_MEAN = "elementwise_mean"


@transform(
    calls=signatures.LOSSES,
    keywords=("size_average",),
    unpacked=True,
    since="1.0",
    tags=("deprecated", "loss"),
    link="https://pytorch.org/docs/stable/generated/torch.nn.MSELoss.html",
)
def loss_reduction(call: Call) -> Iterator[Finding]:
    present = [flag for flag in FLAGS if call.has(flag)]
    if not call.name:
        yield call.report(stranger(call))
        return
    if not present:
        yield from old_mean(call)
        return
    reason = obstacle(call, present)
    if reason:
        yield call.report(reason)
        return
    message = f"replace {' and '.join(f'`{flag}`' for flag in present)} by `reduction`"
    flags = {flag: call.literal(flag) for flag in present}
    if all(value is None or isinstance(value, bool) for value in flags.values()):
        reduction = reduction_for(flags.get("size_average"), flags.get("reduce"))
        put = {"reduction": [call.quoted(reduction)]} if reduction else {}
        yield call.safe_fix(message, call.rewrite(drop=present, put=put))
        return
    yield from conditional(call, present, message)


def stranger(call: Call) -> str:
    """Why a call with a flag of that name is left, when it is not known to be a loss of torch."""
    handing_on = {"functools.partial", "builtins.dict"}
    if handing_on & set(call.called):
        return "its arguments may be handed on to a loss"
    own = " and ".join(f"`{name.rpartition(':')[2]}`" for name in call.called if ":" in name)
    if own:
        return f"{own} is the project's own: what becomes of its `size_average` is its own business"
    return call.doubt or f"{' or '.join(call.called)} is not a loss of torch"


def old_mean(call: Call) -> Iterator[Finding]:
    """The findings for a loss without flags: the old name of the mean."""
    if call.literal("reduction") == OLD_MEAN:
        put = {"reduction": [call.quoted("mean")]}
        yield call.safe_fix(f'replace "{OLD_MEAN}" by "mean"', call.rewrite(put=put))


def obstacle(call: Call, present: Sequence[str]) -> str:
    """Why the flags of a loss cannot be judged or replaced, or nothing."""
    stars, double_stars = call.unpacks
    if double_stars:
        return "its `**` argument may hold another flag"
    # what is before a named `size_average` cannot reach further than its place, and `reduce` comes later
    if stars and not (call.has("size_average") and not call.by_place("size_average")):
        return "its `*` argument may hold another flag"
    for flag in present:
        if flag not in call.signature.parameters:
            return f"{call.name} has no `{flag}`: the call raises"
    if call.has("reduction") and not call.moves_freely("reduction"):
        return "`reduction` is computed by a call too, although the flags win over it"
    written_for = call.module.versions.written_for
    if written_for and written_for < (0, 4, 1) and None in [call.literal(flag) for flag in present]:
        return "before torch 0.4.1 a flag of None counted as False: choose `reduction` by hand"
    return ""


def conditional(call: Call, present: Sequence[str], message: str) -> Iterator[Finding]:
    """The findings for flags of which at least one is an expression."""
    expressions = [flag for flag in present if isinstance(call.literal(flag), ast.expr)]
    constants = [call.literal(flag) for flag in present if flag not in expressions]
    reason = doubt_about_values(call, expressions, constants) or doubt_about_order(call, present, expressions)
    if reason:
        yield call.report(reason)
        return
    fix = call.rewrite(drop=present, put={"reduction": choice(call)})
    if call.literal("reduce") is False or all(is_boolean(call.arguments[flag]) for flag in expressions):
        yield call.safe_fix(message, fix)
    else:
        names = " and ".join(f"`{call.source_of(flag)}`" for flag in expressions)
        yield call.unsafe_fix(f"{message}; {names} must be True or False, and not None", fix)


def doubt_about_values(call: Call, expressions: Sequence[str], constants: Sequence[object]) -> str:
    """Why the flags may be neither True nor False, or nothing."""
    if any(value is not None and not isinstance(value, bool) for value in constants):
        return "a flag is neither True nor False: choose `reduction` by hand"
    for flag in expressions:
        if call.may_be_none(flag):
            return f"`{call.source_of(flag)}` is None unless a caller says otherwise, and None counts as True"
        if call.has("reduction"):
            return f"`reduction` counts where `{call.source_of(flag)}` is None"
    return ""


def doubt_about_order(call: Call, present: Sequence[str], expressions: Sequence[str]) -> str:
    """Why evaluating the flags at another moment, or not at all, may be seen; or nothing."""
    if len(present) == 1 and call.keeps_place(present[0]):
        return ""  # the new argument stands where the flag stood, and evaluates it once
    if not all(call.moves_freely(flag) for flag in expressions):
        return "a flag is computed by a call, and would be computed at another moment"
    if any(call.passes_code(flag) for flag in expressions):
        return "a flag would be evaluated after a call in another argument, which may change it"
    return ""


def choice(call: Call) -> list[str | Operand]:
    """The value of `reduction` for flags that are expressions, as pieces."""
    none, total, mean = (call.quoted(value) for value in ("none", "sum", "mean"))
    average, reduce = (call.literal(flag) for flag in FLAGS)
    if average is None or isinstance(average, bool):
        rest: list[str | Operand] = [total if average is False else mean]
    else:
        rest = [f"{mean} if ", call.operand("size_average"), f" else {total}"]
    if reduce is False:
        return [none]
    if reduce is None or reduce is True:
        return rest
    if len(rest) == 1:
        return [*rest, " if ", call.operand("reduce"), f" else {none}"]
    return [f"{none} if not ", call.operand("reduce", tight=True), " else ", *rest]


def is_boolean(node: ast.expr) -> bool:
    """Whether an expression can be nothing but True or False, whatever its names are."""
    match node:
        case ast.Constant(value=bool()) | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Compare(ops=ops):
            return all(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in ops)
        case ast.BoolOp(values=values):
            return all(is_boolean(value) for value in values)
        case ast.IfExp(body=body, orelse=orelse):
            return is_boolean(body) and is_boolean(orelse)
    return False


def reduction_for(size_average: object, reduce: object) -> str | None:
    """The string that torch derives from the two flags; None when neither is set."""
    if size_average is None and reduce is None:
        return None
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"
