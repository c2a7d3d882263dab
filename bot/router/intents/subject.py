"""What a clause is about: its one target, and how much of it no word list knows."""

from __future__ import annotations

import re
from collections.abc import Collection

from bot.router import vocabulary as v
from bot.router.clauses import Clause
from bot.router.targets import shortest
from engine.topology import parse_target

_LEAVES_OUT = re.compile(r"\b(?:than|vs|versus|compared|unlike|like|while|whereas|as)\b")


def one_target(clause: Clause) -> str | None:
    """Return the one target of a clause, or None; a GPU and its host named apart are one.

    What follows "than", "like" or "compared to" is not what is asked about.
    """
    if "NAMED" in clause.tokens:
        return None
    targets = clause.values("TARGET")
    compared = _LEAVES_OUT.search(clause.shape)
    if len(targets) > 1 and compared:
        asked = clause.shape[: compared.start()].split().count("TARGET")
        targets = targets[:asked] or targets
    if len(targets) == 2:
        targets = _joined(*targets)
    return targets[0] if len(targets) == 1 else None


def has_target(clause: Clause) -> bool:
    """Return whether a clause names a target, told fully or not."""
    return bool({"TARGET", "NAMED"} & set(clause.tokens))


def unknown(clause: Clause, known: Collection[str] = v.COMMON) -> int:
    """Return how many words of a clause are not known."""
    return sum(word not in known for word in clause.words)


def _joined(one: str, other: str) -> list[str]:
    """Return a host and one of its GPUs as that GPU."""
    host, gpu = parse_target(one), parse_target(other)
    if host.gpu is not None:
        host, gpu = gpu, host
    apart = host.host is None or host.gpu is not None or gpu.gpu is None
    if apart or gpu.host not in {None, host.host}:
        return [one, other]
    return [f"{shortest(host)}:{gpu.gpu}"]
