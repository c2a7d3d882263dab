"""The tree of a condition: what its three readers (evaluation, PromQL, sentence) walk over.

Two sorts of nodes: a `Numeric` has a number or is unknown, a `Truthy` is true, false or unknown.
Windows and offsets are whole seconds. ``span`` is the half-open range of characters in the text
that a node was written in; it takes no part in equality, so equal expressions are equal nodes
wherever they stand.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from engine.samples import LOOKBACK_S

Span = tuple[int, int]

LOOKBACK = int(LOOKBACK_S)

NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


@dataclass(frozen=True, slots=True)
class Node:
    """What all nodes share: where they stand in the text."""

    span: Span = field(default=(0, 0), compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Number(Node):
    """A constant; constant arithmetic is folded into one.

    ``limits`` are the thresholds that it comes from, written ``limit.ID``: constants of the
    catalogue, so that a site can change them. ``unit`` is theirs, empty for a bare number.
    """

    value: float
    limits: tuple[str, ...] = ()
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Attr(Node):
    """A fact about the GPU model, written ``gpu.NAME``; the unit is the end of the name."""

    name: str


@dataclass(frozen=True, slots=True)
class Reading(Node):
    """A window function over the samples of one signal.

    ``function`` is last, avg, min, max, quantile, rate, increase, changes or stddev; ``q`` is the
    quantile (0 to 1), otherwise None. The window of ``last`` is the lookback of five minutes.
    """

    function: str
    signal: str
    window_s: int
    q: float | None = None


@dataclass(frozen=True, slots=True)
class Age(Node):
    """Seconds since the newest sample of a signal."""

    signal: str


@dataclass(frozen=True, slots=True)
class Share(Node):
    """Fraction (0 to 1) of the samples in a window that have any of the bits set."""

    signal: str
    bits: tuple[str, ...]
    mask: int
    window_s: int


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """Arithmetic: ``op`` is one of + - * /; division by zero is unknown."""

    op: str
    left: Numeric
    right: Numeric


@dataclass(frozen=True, slots=True)
class Negative(Node):
    """The number with its sign turned."""

    operand: Numeric


@dataclass(frozen=True, slots=True)
class Absolute(Node):
    """The number without its sign."""

    operand: Numeric


@dataclass(frozen=True, slots=True)
class Coalesce(Node):
    """The first of the options that is known."""

    options: tuple[Numeric, ...]


@dataclass(frozen=True, slots=True)
class Peers(Node):
    """median, mad, min or max of a number over all peers, itself included.

    ``group`` is ``siblings`` (those of the same host, or what takes its place in other frames than
    that of GPUs, see `engine.samples.Frame.host`), ``job`` (those of the same job) or ``rail`` (the
    same port of other hosts, see `engine.samples.Frame.rail`).
    """

    function: str
    operand: Numeric
    group: str = "siblings"


@dataclass(frozen=True, slots=True)
class PeerCount(Node):
    """For how many peers (count), or which part of them (share), something is true.

    ``group`` is that of `Peers`.
    """

    function: str
    operand: Truthy
    group: str = "siblings"


@dataclass(frozen=True, slots=True)
class PastNumber(Node):
    """The number as it was ``offset_s`` seconds earlier."""

    operand: Numeric
    offset_s: int


@dataclass(frozen=True, slots=True)
class PastTruth(Node):
    """The truth as it was ``offset_s`` seconds earlier."""

    operand: Truthy
    offset_s: int


@dataclass(frozen=True, slots=True)
class Compare(Node):
    """One comparison of two numbers; unknown if either is."""

    op: str
    left: Numeric
    right: Numeric


@dataclass(frozen=True, slots=True)
class And(Node):
    """True if all parts are, false if any is false, else unknown."""

    parts: tuple[Truthy, ...]


@dataclass(frozen=True, slots=True)
class Or(Node):
    """True if any part is, false if all are false, else unknown."""

    parts: tuple[Truthy, ...]


@dataclass(frozen=True, slots=True)
class Not(Node):
    """The opposite of a leaf that has no opposite operator of its own (see `push_not`)."""

    operand: Truthy


@dataclass(frozen=True, slots=True)
class Has(Node):
    """Any of the bits is set in the newest sample of a mask; ``mask`` is all of them OR'd."""

    signal: str
    bits: tuple[str, ...]
    mask: int


@dataclass(frozen=True, slots=True)
class Presence(Node):
    """Whether there is a reading: ``state`` is known, missing or blank. Never unknown."""

    state: str
    signal: str


@dataclass(frozen=True, slots=True)
class ChangedTo(Node):
    """A code signal changed to one of the codes inside the window."""

    signal: str
    codes: frozenset[int]
    window_s: int


@dataclass(frozen=True, slots=True)
class IsCode(Node):
    """The newest value of a code signal is one of the codes."""

    signal: str
    codes: frozenset[int]


Numeric = (
    Number
    | Attr
    | Reading
    | Age
    | Share
    | Binary
    | Negative
    | Absolute
    | Coalesce
    | Peers
    | PeerCount
    | PastNumber
)
Truthy = Compare | And | Or | Not | Has | Presence | ChangedTo | IsCode | PastTruth
Expression = Numeric | Truthy


def children(node: Expression) -> tuple[Expression, ...]:
    """Return the operands of a node in written order."""
    match node:
        case Binary() | Compare():
            return (node.left, node.right)
        case And() | Or():
            return node.parts
        case Coalesce():
            return node.options
        case Negative() | Absolute() | Peers() | PeerCount() | PastNumber() | PastTruth() | Not():
            return (node.operand,)
        case _:
            return ()


def walk(node: Expression) -> Iterator[Expression]:
    """Yield a node and everything below it, in written order."""
    yield node
    for child in children(node):
        yield from walk(child)


# Evidence asks these of the same nodes for every entity.
@functools.lru_cache(maxsize=4096)
def signals_of(node: Expression) -> tuple[str, ...]:
    """Return the signals that an expression reads, in written order, each once."""
    found = (n.signal for n in walk(node) if hasattr(n, "signal"))
    return tuple(dict.fromkeys(found))


def needed_by(node: Expression) -> frozenset[str]:
    """Return signals of which at least one must be there, or the node is surely unknown.

    Of several such sets the smallest; empty if there is none.
    """
    match node:
        case Reading() | Share():
            return frozenset({node.signal})
        case Binary() | Compare() | Negative() | Absolute() | PastNumber():
            sets = [found for child in children(node) if (found := needed_by(child))]
            return min(sets, key=lambda found: (len(found), sorted(found)), default=frozenset())
        case Coalesce(options=options):
            sets = [needed_by(option) for option in options]
            return frozenset().union(*sets) if all(sets) else frozenset()
        case _:
            return frozenset()


def attrs_of(node: Expression) -> tuple[str, ...]:
    """Return the ``gpu.*`` names that an expression reads, in written order, each once."""
    return tuple(dict.fromkeys(n.name for n in walk(node) if isinstance(n, Attr)))


@functools.lru_cache(maxsize=4096)
def limits_of(node: Expression) -> tuple[str, ...]:
    """Return the ``limit.*`` ids that an expression uses, in written order, each once."""
    numbers = (n for n in walk(node) if isinstance(n, Number))
    return tuple(dict.fromkeys(name for number in numbers for name in number.limits))


def reach_s(node: Expression, offset_s: int = 0) -> int:
    """Return how many seconds before the moment judged the oldest needed sample may lie."""
    if isinstance(node, PastNumber | PastTruth):
        return reach_s(node.operand, offset_s + node.offset_s)
    own = 0
    if isinstance(node, Reading | Share | ChangedTo):
        own = offset_s + node.window_s
    elif hasattr(node, "signal"):
        own = offset_s + LOOKBACK
    return max([own, *(reach_s(child, offset_s) for child in children(node))])


def push_not(node: Truthy, *, negate: bool = False) -> Truthy:
    """Move every ``not`` down to the leaves (De Morgan holds in Kleene logic).

    Comparisons take the opposite operator, ``known`` and ``missing`` swap; what is left is `Not`
    around a `Has`, `ChangedTo`, `IsCode` or ``blank`` leaf.
    """
    match node:
        case Not():
            return push_not(node.operand, negate=not negate)
        case And() | Or():
            parts = tuple(push_not(part, negate=negate) for part in node.parts)
            if isinstance(node, And) != negate:
                return And(parts, span=node.span)
            return Or(parts, span=node.span)
        case Compare():
            op = NEGATED[node.op] if negate else node.op
            return Compare(op, _inside(node.left), _inside(node.right), span=node.span)
        case PastTruth():
            return replace(node, operand=push_not(node.operand, negate=negate))
        case Presence(state="known" | "missing") if negate:
            return replace(node, state="missing" if node.state == "known" else "known")
        case _:
            return Not(node, span=node.span) if negate else node


def _inside(node: Numeric) -> Numeric:
    """Push ``not`` down in the conditions that a number counts over."""
    match node:
        case PeerCount():
            return replace(node, operand=push_not(node.operand))
        case Binary():
            return replace(node, left=_inside(node.left), right=_inside(node.right))
        case Negative() | Absolute() | Peers() | PastNumber():
            return replace(node, operand=_inside(node.operand))
        case Coalesce():
            return replace(node, options=tuple(_inside(option) for option in node.options))
        case _:
            return node


def normal(node: Expression) -> str:
    """Return a text that is equal for equal expressions: the key under which results are kept."""
    match node:
        case Number():
            return repr(node.value)
        case Attr():
            return f"gpu.{node.name}"
        case Reading():
            q = "" if node.q is None else f"{node.q!r},"
            return f"{node.function}({q}{node.signal},{node.window_s})"
        case Age():
            return f"age({node.signal})"
        case Share():
            return f"share({node.signal},{node.mask},{node.window_s})"
        case Binary() | Compare():
            return f"({normal(node.left)}{node.op}{normal(node.right)})"
        case Has():
            return f"has({node.signal},{node.mask})"
        case Presence():
            return f"{node.state}({node.signal})"
        case ChangedTo():
            return f"changed_to({node.signal},{sorted(node.codes)},{node.window_s})"
        case IsCode():
            return f"is_code({node.signal},{sorted(node.codes)})"
        case PastNumber() | PastTruth():
            return f"past({normal(node.operand)},{node.offset_s})"
        case Peers() | PeerCount():
            return f"{node.group}.{node.function}({normal(node.operand)})"
        case _:
            inner = ",".join(normal(child) for child in children(node))
            return f"{type(node).__name__.lower()}({inner})"
