"""Follow-up questions: "and on AMD?", "for 1003?", "what about H200?".

A follow-up keeps the subject of the question before it and changes one thing. What it names takes
the place of what the question before named of the same kind (a vendor for a vendor, a number for a
number, a tool for a tool); everything else is kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from engine.lookup.card import Card
from engine.lookup.index import Index

_OPENING = re.compile(
    r"^(?:ok(?:ay)?,?\s+|so,?\s+)?"
    r"(?:and|but|or|also|what about|how about|what if|same|ditto|for|on|in|with)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"^(?:0x[0-9a-f]+|[0-9]+)$")
_GPU = re.compile(r"^(?:[abghltv][0-9]{1,3}[a-z]?|gb[0-9]{3}|gh200|rtx[0-9]*|mi[0-9]{3}[ax]?)$")
_KINDS: tuple[frozenset[str], ...] = (
    frozenset(("amd", "rocm", "instinct", "nvidia", "cuda", "intel")),
    frozenset(("vllm", "sglang", "tgi", "triton", "tensorrt", "trtllm", "dynamo")),
    frozenset(("lustre", "gpfs", "nfs", "weka", "beegfs", "scale")),
    frozenset(("slurm", "kubernetes", "k8s", "docker")),
    frozenset(
        (
            "nsys",
            "ncu",
            "dcgmi",
            "dcgm",
            "nvidia-smi",
            "rocprofv3",
            "rocprof",
            "amd-smi",
            "rocm-smi",
        )
    ),
    frozenset(("training", "inference", "serving")),
    frozenset(("v0", "v1")),
    frozenset(
        ("allreduce", "allgather", "reducescatter", "broadcast", "alltoall", "sendrecv", "reduce")
    ),
)
_AMD = frozenset(("amd", "rocm", "instinct"))
_NVIDIA = frozenset(("nvidia", "cuda"))
# A question this short says too little to stand alone.
_SHORT = 3
_FAVOUR, _DISFAVOUR = 1.5, 0.5


@dataclass(frozen=True, slots=True)
class Meant:
    """What a follow-up means as a question of its own, and which entries it favours."""

    text: str
    boost: Callable[[Card], float] | None = None


def follow_up(question: str, before: str, index: Index) -> Meant | None:
    """Return what a question means after another one, or None if it stands alone.

    Args:
        question: the new question.
        before: the question before it.
        index: decides what is a term.
    """
    if not _OPENING.match(question) and len(index.words(question)) > _SHORT:
        return None
    new = _words(question)
    said: list[str] = []
    placed: set[str] = set()
    for word in _words(before):
        other = next((one for one in new if _same_kind(word, one)), None)
        if other is None:
            said.append(word)
        elif other not in placed:
            said.append(other)
            placed.add(other)
    # What is new is what is asked for: it counts twice.
    rest = [word for word in new if word not in placed]
    said += [*rest, *new]
    vendor = "amd" if _AMD & set(new) or any(w.startswith("mi3") for w in new) else ""
    vendor = vendor or ("nvidia" if _NVIDIA & set(new) else "")
    if not vendor:
        return Meant(" ".join(said))
    return Meant(" ".join([*said, vendor]), lambda card: _favour(card, vendor))


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9][a-z0-9_:.+-]*", text.casefold().replace("all-", "all"))


def _same_kind(old: str, new: str) -> bool:
    if old == new:
        return True
    for pattern in (_NUMBER, _GPU):
        if pattern.match(old) and pattern.match(new):
            return True
    return any(old in kind and new in kind for kind in _KINDS)


def _favour(card: Card, vendor: str) -> float:
    if card.vendor == vendor:
        return _FAVOUR
    return 1.0 if card.vendor == "any" else _DISFAVOUR
