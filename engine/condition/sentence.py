"""The tree as English: what a condition says, with units."""

from __future__ import annotations

from engine.catalogue.types import Catalogue
from engine.condition.tree import (
    MIRRORED,
    Absolute,
    Age,
    And,
    Attr,
    Binary,
    ChangedTo,
    Coalesce,
    Compare,
    Has,
    IsCode,
    Negative,
    Not,
    Number,
    Numeric,
    Or,
    PastNumber,
    PastTruth,
    PeerCount,
    Peers,
    Presence,
    Reading,
    Share,
    Truthy,
    signals_of,
)
from engine.condition.units import digits, span_of, unit_of, written

COMPARED = {
    "<": "below",
    "<=": "at most",
    ">": "above",
    ">=": "at least",
    "==": "equal to",
    "!=": "different from",
}
_FUNCTIONS = {
    "avg": "average",
    "min": "lowest",
    "max": "highest",
    "rate": "rate of",
    "increase": "increase of",
    "changes": "number of changes of",
    "stddev": "standard deviation of",
}
# With whom an entity is compared, by the scope of what is compared.
_PEERS = {
    "gpu": "the host's GPUs",
    "node": "the nodes",
    "port": "the host's ports",
    "rank": "the job's ranks",
    "service": "the model's engines",
    "filesystem": "the hosts of the file system",
}
_ARITHMETIC = {"+": "plus", "-": "minus", "*": "times"}
_UPPER = frozenset({"tdp", "sm", "hbm", "ecc", "fp8", "fp16", "fp32", "fp64", "bf16", "pcie"})
# Names, which keep their capital inside a sentence.
_NAMES = frozenset({"Xid", "Sxid"})
_ENDINGS = ("_mhz", "_tflops", "_gib", "_gbps", "_w", "_c")


class Writer:
    """Writes nodes in words, with the titles and units of one catalogue."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        # The numbers of a rule are named again for every entity that shows them.
        self._phrases: dict[tuple[Numeric, str], str] = {}

    def title(self, signal: str) -> str:
        """Return a signal's title as it stands inside a sentence."""
        title = self.catalogue.signals[signal].title
        first = title.split(" ", 1)[0]
        plain = first not in _NAMES and (first[1:].islower() or len(first) == 1)
        return title[0].lower() + title[1:] if plain else title

    def sentence(self, node: Truthy) -> str:
        """Say a condition in words, without a full stop."""
        match node:
            case Compare():
                return self._compare(node)
            case And(parts=parts):
                return " and ".join(self._part(part) for part in parts)
            case Or(parts=parts):
                return " or ".join(self._part(part) for part in parts)
            case Not():
                return self._leaf(node.operand, negated=True)
            case PastTruth():
                return f"{span_of(node.offset_s)} earlier, {self._part(node.operand)}"
            case _:
                return self._leaf(node, negated=False)

    def _part(self, node: Truthy) -> str:
        text = self.sentence(node)
        return f"({text})" if isinstance(node, And | Or) else text

    def _compare(self, node: Compare) -> str:
        unit = unit_of(node.left, self.catalogue) or unit_of(node.right, self.catalogue)
        left, right, op = node.left, node.right, node.op
        if isinstance(left, Number):
            left, right, op = right, left, MIRRORED[op]
        return f"{self.phrase(left, unit)} is {COMPARED[op]} {self.phrase(right, unit)}"

    def _leaf(self, node: Truthy, *, negated: bool) -> str:
        match node:
            case Has():
                verb = "do not show" if negated else "show"
                return f"{self.title(node.signal)} {verb} {' or '.join(node.bits)}"
            case IsCode():
                verb = "is none of" if negated else "is"
                return f"{self.title(node.signal)} {verb} {codes_in_words(node.codes)}"
            case ChangedTo():
                verb = "did not change" if negated else "changed"
                window = span_of(node.window_s)
                codes = codes_in_words(node.codes)
                return f"{self.title(node.signal)} {verb} to {codes} in the last {window}"
            case Presence(state="blank"):
                sort = "not only" if negated else "only"
                return f"{self.title(node.signal)} came with {sort} blank samples"
            case Presence(state=state):
                word = "a" if state == "known" else "no"
                return f"there is {word} reading of {self.title(node.signal)}"
            case _:
                return f"not ({self.sentence(node)})" if negated else self.sentence(node)

    def phrase(self, node: Numeric, unit: str = "") -> str:
        """Name a number in words; ``unit`` is what a bare constant is measured in."""
        key = (node, unit)
        text = self._phrases.get(key)
        if text is None:
            text = self._phrases[key] = self._phrase(node, unit)
        return text

    def _phrase(self, node: Numeric, unit: str) -> str:
        match node:
            case Number():
                return written(node.value, node.unit or unit)
            case Attr(name=name):
                return f"the GPU model's {attr_words(name)}"
            case Reading():
                return self._reading(node)
            case Age(signal=signal):
                return f"the age of the newest {self.title(signal)}"
            case Share():
                window = span_of(node.window_s)
                bits = " or ".join(node.bits)
                return f"the share of {self.title(node.signal)} samples with {bits} over {window}"
            case Binary():
                return self._binary(node, unit)
            case Negative():
                return f"minus {self.phrase(node.operand, unit)}"
            case Absolute(operand=Binary(op="-", left=left, right=right)):
                return f"the distance of {self.phrase(left, unit)} from {self.phrase(right, unit)}"
            case Absolute():
                return f"the absolute value of {self.phrase(node.operand, unit)}"
            case Coalesce(options=options):
                return f"({', or else '.join(self.phrase(o, unit) for o in options)})"
            case Peers(function=function):
                name = {"mad": "median deviation", "min": "lowest", "max": "highest"}.get(
                    function, function
                )
                return f"the {name} of {self.phrase(node.operand)} among {self._peers(node)}"
            case PeerCount(function=function):
                name = "number" if function == "count" else "share"
                return f"the {name} of {self._peers(node)} where {self.sentence(node.operand)}"
            case PastNumber():
                return f"{self.phrase(node.operand, unit)} {span_of(node.offset_s)} earlier"

    def _peers(self, node: Peers | PeerCount) -> str:
        if node.group == "job":
            return "the job's GPUs"
        if node.group == "rail":
            return "the same ports of hosts with the same GPUs"
        signals = signals_of(node.operand)
        return _PEERS[self.catalogue.signals[signals[0]].scope if signals else "gpu"]

    def _reading(self, node: Reading) -> str:
        title = self.title(node.signal)
        if node.function == "last":
            return title
        window = span_of(node.window_s)
        if node.q is not None:
            return f"percentile {digits(node.q * 100)} of {title} over {window}"
        return f"{_FUNCTIONS[node.function]} {title} over {window}"

    def _binary(self, node: Binary, unit: str) -> str:
        if node.op == "/" and not isinstance(node.right, Number):
            return f"the ratio of {self.phrase(node.left)} to {self.phrase(node.right)}"
        if node.op in "*/":
            return self._scaled(node, unit)
        left, right = self.phrase(node.left, unit), self.phrase(node.right, unit)
        return f"{left} {_ARITHMETIC[node.op]} {right}"

    def _scaled(self, node: Binary, unit: str) -> str:
        left, right = node.left, node.right
        if isinstance(right, Number) and unit_of(left, self.catalogue) in {"ns", "ns/s"}:
            # Only brings nanoseconds to seconds, which the unit of the threshold says.
            return self.phrase(left)
        if isinstance(right, Number):
            left, right = right, left
        if node.op == "*" and isinstance(left, Number) and 0 < left.value < 1:
            return f"{digits(left.value * 100)} % of {self.phrase(right, unit)}"
        word = _ARITHMETIC.get(node.op, "divided by")
        return f"{self._factor(node.left)} {word} {self._factor(node.right)}"

    def _factor(self, node: Numeric) -> str:
        """Name a factor: of a constant the bare number, as 1.1 times something is no 110 %."""
        return digits(node.value) if isinstance(node, Number) else self.phrase(node)


def codes_in_words(codes: frozenset[int]) -> str:
    """List codes in ascending order: ``79 or 119``."""
    return " or ".join(str(code) for code in sorted(codes))


def attr_words(name: str) -> str:
    """Turn the name of a ``gpu.*`` attribute into words: ``max_sm_clock_mhz``: max SM clock."""
    for ending in _ENDINGS:
        name = name.removesuffix(ending)
    return " ".join(word.upper() if word in _UPPER else word for word in name.split("_"))
