"""The names by which policy knows a target: what was typed, in the one spelling that rules use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bot.request import Request
from engine.errors import UsageError
from engine.model import Kind
from engine.topology import Target, parse_target

FLEET = "fleet"
# Commands whose ``target`` argument names what they look at or touch (of rules: why-not).
_TARGETED = frozenset({"why", "capture", "approve", "rules"})


@dataclass(frozen=True, slots=True)
class Names:
    """What a request is about.

    Attributes:
        names: the target's name, then its host's; empty for a command that has no target.
        everything: it takes in the whole fleet, so anything that a rule denies is part of it.
        vague: which hosts it takes in is only known once it is answered (a UUID, a job, a pod).
    """

    names: tuple[str, ...] = ()
    everything: bool = False
    vague: bool = False

    @property
    def shown(self) -> str:
        """The name for messages and the audit log."""
        return self.names[0] if self.names else ""


def names_of(request: Request) -> Names:
    """Return what a request is about.

    A target that cannot be read is known by its text alone: whoever runs the command refuses it.
    """
    if request.command == "sweep":
        return Names((FLEET,), everything=True)
    typed = request.args.get("target")
    if request.command not in _TARGETED or not isinstance(typed, str):
        return Names()
    try:
        return _of_target(parse_target(typed))
    except UsageError:
        return Names((typed[:200],), vague=True)


def named_in(answer: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield the names of every entity that an answer document is about."""
    for entity in (answer.get("target"), *(answer.get("members") or ())):
        if isinstance(entity, Mapping):
            cluster = entity.get("cluster")
            yield _with_cluster(cluster, entity.get("name"), entity.get("host"))


def _of_target(target: Target) -> Names:
    host = target.host
    match target.kind:
        case Kind.FLEET:
            return Names(_with_cluster(target.cluster, FLEET), everything=True)
        case Kind.GPU if host and target.gpu is not None:
            return Names(_with_cluster(target.cluster, f"{host}:{target.gpu}", host))
        case Kind.NODE if host:
            # Denied GPUs of an allowed node are found when it is answered.
            return Names(_with_cluster(target.cluster, host), vague=True)
        case Kind.JOB:
            return Names(_with_cluster(target.cluster, f"job/{target.job}"), vague=True)
        case _:
            text = " ".join(target.text.split())
            return Names((text,), vague=True)


def _with_cluster(cluster: str | None, *names: str | None) -> tuple[str, ...]:
    known = [name for name in names if name]
    qualified = [f"{cluster}::{name}" for name in known] if cluster else []
    return tuple(dict.fromkeys([*qualified, *known]))
