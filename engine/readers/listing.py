"""The base of readers of tools' listings: sections, lines of several hosts, bounded records.

A listing is a header and lines under it. Parallel shells (``pdsh``, ``clush``, ``ansible``) put
``HOST: `` before each line and mix the hosts; each host then has its own place in its own listing,
and what was read goes into one collection, so that hosts can be compared.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, Generic, TypeVar

from engine.model import Entity, Finding, Kind, Severity
from engine.readers.base import Context, Result

T = TypeVar("T")

_SEVERITIES: Final = tuple(Severity)
_HOST_PREFIX: Final = re.compile(r"^\s?([A-Za-z][\w.-]{0,62}): {0,3}(.*)$")
# root@node-3:~# COMMAND, [root@node-3 ~]$ COMMAND, node-3$ COMMAND
_PROMPT: Final = re.compile(
    r"^\[?(?:[\w.-]{1,32}@)?([A-Za-z][\w.-]{0,62})[ :][^\]#$>%]{0,80}\]?[#$%] ?(.*)$"
)
# The same without a host: $ COMMAND
_BARE_PROMPT: Final = re.compile(r"^[$%] [a-z./]")
# What stands before a colon and is no host: tools, loggers and people name themselves so.
_NO_HOST: Final = frozenset(
    {"dmesg", "error", "fatal", "info", "kernel", "lspci", "note", "nvidia-smi", "nvlink"}
    | {"nvml", "nvrm", "output", "stderr", "stdout", "topo", "warn", "warning"}
)
MAX_HOSTS: Final = 1_024


class Kept(Generic[T]):
    """Records in the order of the text, at most ``limit``; ``overflow`` counts the rest."""

    def __init__(self, limit: int = 4_096) -> None:
        self.items: list[T] = []
        self.overflow = 0
        self._limit = limit

    def add(self, item: T) -> bool:
        """Keep a record; False if there are too many."""
        if len(self.items) >= self._limit:
            self.overflow += 1
            return False
        self.items.append(item)
        return True


class Listing(Generic[T]):
    """A reader of one tool's listing.

    A subclass says which line belongs (`take`) and what the records show (`judge`). ``inside`` is
    True while lines of the listing may follow; it ends by itself after ``PATIENCE`` foreign lines.
    """

    triggers: ClassVar[tuple[bytes, ...]] = ()
    PATIENCE: ClassVar[int] = 2

    def __init__(
        self, context: Context, host: str | None = None, kept: Kept[T] | None = None
    ) -> None:
        self.open = False
        self.context = context
        self.host = host
        self.kept: Kept[T] = Kept() if kept is None else kept
        self.inside = False
        self._child = host is not None
        self._misses = 0
        self._hosts: dict[str, Listing[T]] = {}

    @abstractmethod
    def take(self, number: int, text: str) -> bool:
        """Take one line without its host prefix; return whether it belongs to the listing."""

    @abstractmethod
    def judge(self, records: Sequence[T]) -> Result:
        """Say what all records show; called once, and only if there are any."""

    def end(self) -> None:
        """Close what is being read: the listing has ended."""

    def feed(self, number: int, text: str) -> bool:
        """Offer a line to the listing, or to the one of the host it names."""
        taken = self._own(number, text) or self._of_host(number, text)
        self.open = self.inside or any(one.inside for one in self._hosts.values())
        return taken

    def finish(self) -> Result:
        """Say what was read."""
        for one in (self, *self._hosts.values()):
            if one.inside:
                one.inside = False
                one.end()
        if not self.kept.items:
            return Result()
        result = self.judge(self.kept.items)
        if self.kept.overflow:
            result.notes.append(
                f"{self.kept.overflow} more lines of {listed_kinds(result)} are counted only."
            )
        return result

    def _own(self, number: int, text: str) -> bool:
        taken = self.take(number, text)
        if taken:
            self._misses = 0
        elif self.inside:
            prompt = prompt_host(text)
            if prompt and not self._child:
                self.host = prompt
            self._misses += 1
            if prompt or _BARE_PROMPT.match(text) or self._misses > self.PATIENCE:
                self.inside, self._misses = False, 0
                self.end()
        return taken

    def _of_host(self, number: int, text: str) -> bool:
        found = _HOST_PREFIX.match(text)
        if found is None or self._child or found[1].lower() in _NO_HOST:
            return False
        one = self._hosts.get(found[1])
        if one is not None:
            return one._own(number, found[2])  # noqa: SLF001 - one of ourselves
        if len(self._hosts) >= MAX_HOSTS:
            return False
        one = type(self)(self.context, found[1], self.kept)
        if not one._own(number, found[2]):  # noqa: SLF001
            return False
        self._hosts[found[1]] = one
        return True


def prompt_host(text: str) -> str | None:
    """Return the host that a shell's prompt names, None where a line has no prompt."""
    prompt = _PROMPT.match(text)
    return prompt[1] if prompt else None


def listed_kinds(result: Result) -> str:
    """Return the first kind of a result, for a note."""
    return result.kinds[0] if result.kinds else "this kind"


def finding(
    kind: str,
    id_: str,
    severity: Severity,
    says: str,
    action: str,
    *,
    line: int | None = None,
    cause: str | None = None,
    data: Mapping[str, Any] | None = None,
    entity: Entity | None = None,
    sources: Sequence[str] = (),
) -> Finding:
    """Build a finding; ``data`` without the keys that are None."""
    return Finding(
        kind=kind,
        id=id_,
        severity=severity,
        says=says,
        action=action,
        entity=entity,
        line=line,
        cause=cause,
        data={key: value for key, value in (data or {}).items() if value is not None},
        sources=tuple(sources),
    )


def result_of(kinds: Iterable[str], findings: Iterable[Finding]) -> Result:
    """Put findings into a result, the worst first, with their causes."""
    ordered = sorted(findings, key=lambda f: _SEVERITIES.index(f.severity))
    return Result(
        kinds=list(dict.fromkeys(kinds)),
        findings=ordered,
        causes=list(dict.fromkeys(f.cause for f in ordered if f.cause)),
    )


def node(host: str | None) -> Entity | None:
    """Return a host as an entity, None if it is not known."""
    return Entity(Kind.NODE, host, host=host) if host else None


def filesystem(name: str, host: str | None = None) -> Entity:
    """Return a file system as an entity, by its mount point or name."""
    return Entity(Kind.FILESYSTEM, name, host=host)


def at(host: str | None) -> str:
    """Return ``HOST: `` for the start of a sentence, nothing if the host is not known."""
    return f"{host}: " if host else ""
