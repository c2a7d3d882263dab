"""Targets: what a user names, and how free text names it.

`parse_target` reads the grammar of the contract (``node-3:5``, ``GPU-3a4f…``, ``pod/NS/NAME``,
``job/ID`` …) and the spoken forms of a GPU ("gpu 5 on node-3", "node-3/gpu-5", "GPU5@node-3").
Nothing here looks at data: whether the target exists is decided by what the source returns, and so
is what a ``#`` in ``svc/MODEL#INSTANCE`` belongs to (`Target.models`). Names of jobs and models may
hold blanks; where a blank or another sign is in the way, ``%20`` and its like stand for it.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from urllib.parse import unquote

from engine.errors import UsageError
from engine.model import Kind

# A number above this after "host:" is an exporter's port, not a GPU index (contract: 0-63).
MAX_GPU_INDEX = 63
_MAX_TEXT = 512

_HOST = r"(?P<host>[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]{2,45}\])"
_GPU_WORD = r"gpu[\s_#-]*(?P<gpu>\d{1,2})"
# Without ASCII, digits of other scripts would be GPU indexes, and "K" (Kelvin) a letter of a host.
_ANY_CASE = re.IGNORECASE | re.ASCII
_SPOKEN = tuple(
    re.compile(pattern, _ANY_CASE)
    for pattern in (
        rf"{_GPU_WORD}\s*(?:@|,|\bon\b|\bof\b|\bat\b|\bin\b)?\s*(?:node|host|server|machine)\s+{_HOST}",
        rf"{_GPU_WORD}\s*(?:@|,\s*|\s(?:on|of|at|in)\s)\s*{_HOST}",
        rf"{_HOST}\s*(?:[/:,]\s*|\s+){_GPU_WORD}",
    )
)
_HOST_INDEX = re.compile(rf"{_HOST}(?::(?P<number>\d{{1,5}}))?", re.ASCII)
# Exporters print the prefix in capitals; "gpu-a17" is how people name hosts, unless it goes on to
# the length of a whole UUID.
_WHOLE = r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
_UUID = re.compile(rf"GPU-[0-9A-Fa-f][0-9A-Fa-f-]{{0,35}}|(?i:GPU)-{_WHOLE}", re.ASCII)
_MIG = re.compile(rf"MIG-[0-9A-Za-z][0-9A-Za-z/-]{{0,79}}|(?i:MIG)-{_WHOLE}", re.ASCII)
# A GPU alone is written with a space: "gpu 5"; "gpu05" in one word is a host.
_ALONE = re.compile(r"gpu[\s#]+(?P<gpu>\d{1,2})", _ANY_CASE)
# Words that stand before "gpu 5" in a sentence and are no hosts.
_NO_HOST = frozenset(
    {"a", "and", "at", "gpu", "in", "is", "my", "of", "on", "our", "the", "what", "why"}
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_RANK = re.compile(r"(?P<job>.+)/rank/(?P<rank>\d{1,6})", re.ASCII)
_ENCODED = re.compile(r"%[0-9A-Fa-f]{2}")

_FORMS = (
    "use HOST:GPU (node-3:5), GPU-UUID, MIG-UUID, HOST, pod/NAMESPACE/NAME, job/ID, job/ID/rank/N, "
    "svc/MODEL, svc/MODEL#INSTANCE, fs/MOUNT, rack/NAME or fleet"
)


@dataclass(frozen=True, slots=True)
class Target:
    """What was asked about, as far as the words say. ``uuid`` may be a prefix.

    ``port`` is the number of ``HOST:NUMBER`` when it is too large for a GPU index. ``hosts`` are
    those of a rack, which no words tell: the map of the site does.
    """

    kind: Kind
    text: str
    cluster: str | None = None
    host: str | None = None
    gpu: int | None = None
    uuid: str | None = None
    mig: str | None = None
    namespace: str | None = None
    pod: str | None = None
    job: str | None = None
    rank: int | None = None
    service: str | None = None
    instance: str | None = None
    mount: str | None = None
    port: int | None = None
    rack: str | None = None
    hosts: tuple[str, ...] = ()

    @property
    def models(self) -> tuple[tuple[str, str | None], ...]:
        """What model and instance a service's name may mean, the longest model first.

        Names of models may hold a ``#`` too: which it is, the data decide.
        """
        if self.service is None:
            return ()
        if self.instance is None:
            return ((self.service, None),)
        parts = f"{self.service}#{self.instance}".split("#")
        whole: list[tuple[str, str | None]] = [("#".join(parts), None)]
        split = [("#".join(parts[:k]), "#".join(parts[k:])) for k in range(len(parts) - 1, 0, -1)]
        return (*whole, *(one for one in split if all(one)))

    def among(self, models: Collection[str | None]) -> Target:
        """Return the target with the longest model of its name that is one of these."""
        for model, instance in self.models:
            if model in models:
                return replace(self, service=model, instance=instance)
        return self


def parse_target(text: str) -> Target:
    """Read a target from what a user typed.

    Raises:
        UsageError: the text is empty, too long, or has none of the known forms.
    """
    cleaned = " ".join(text.split())
    if len(cleaned) > 2 and cleaned[0] == cleaned[-1] and cleaned[0] in "\"'`":
        cleaned = cleaned[1:-1].strip()
    if not cleaned:
        raise UsageError("no target given", hint=_FORMS)
    if len(cleaned) > _MAX_TEXT:
        raise UsageError(f"target is longer than {_MAX_TEXT} characters", hint=_FORMS)
    cluster = None
    rest = cleaned
    if "::" in cleaned and not cleaned.startswith("["):
        cluster, rest = cleaned.split("::", 1)
        if not _NAME.fullmatch(cluster):
            raise _unreadable(cleaned)
    target = _simple(rest, cleaned, cluster) or _pathlike(rest, cleaned, cluster)
    if target is None:
        raise _unreadable(cleaned)
    return target


def _simple(rest: str, text: str, cluster: str | None) -> Target | None:
    if rest.lower() == "fleet":
        return Target(Kind.FLEET, text, cluster)
    if _UUID.fullmatch(rest):
        return Target(Kind.GPU, text, cluster, uuid="GPU-" + rest[4:].lower())
    if _MIG.fullmatch(rest):
        return Target(Kind.GPU, text, cluster, mig="MIG-" + rest[4:])
    for spoken in _SPOKEN:
        found = spoken.fullmatch(rest)
        if found and int(found["gpu"]) <= MAX_GPU_INDEX and found["host"].lower() not in _NO_HOST:
            return Target(Kind.GPU, text, cluster, host=found["host"], gpu=int(found["gpu"]))
    alone = _ALONE.fullmatch(rest)
    if alone and int(alone["gpu"]) <= MAX_GPU_INDEX:
        return Target(Kind.GPU, text, cluster, gpu=int(alone["gpu"]))
    found = _HOST_INDEX.fullmatch(rest)
    if not found:
        return None
    number = found["number"]
    if number is None or int(number) > MAX_GPU_INDEX:
        port = None if number is None else int(number)
        return Target(Kind.NODE, text, cluster, host=found["host"], port=port)
    return Target(Kind.GPU, text, cluster, host=found["host"], gpu=int(number))


def _pathlike(rest: str, text: str, cluster: str | None) -> Target | None:
    head, _, tail = rest.partition("/")
    parts = tail.split("/")
    match head.lower():
        case "pod" if len(parts) == 2 and all(_NAME.fullmatch(p) for p in parts):
            return Target(Kind.POD, text, cluster, namespace=parts[0], pod=parts[1])
        case "job" if tail and "://" not in tail:
            ranked = _RANK.fullmatch(tail)
            job = _plain(ranked["job"] if ranked else tail)
            if job and ranked:
                return Target(Kind.RANK, text, cluster, job=job, rank=int(ranked["rank"]))
            if job:
                return Target(Kind.JOB, text, cluster, job=job)
        case "svc" if tail:
            model, _, instance = (_plain(part) for part in tail.partition("#"))
            if model:
                return Target(Kind.SERVICE, text, cluster, service=model, instance=instance or None)
        case "rack" if rack := _plain(tail):
            return Target(Kind.RACK, text, cluster, rack=rack)
        case "fs" if tail:
            return Target(Kind.FILESYSTEM, text, cluster, mount="/" + tail.lstrip("/"))
    return None


def _plain(name: str) -> str:
    """Return a name with ``%20`` and its like as what they stand for; empty if it is none."""
    name = unquote(name, errors="strict") if _decodes(name) else name
    return name if name.isprintable() and name == name.strip() else ""


def _decodes(name: str) -> bool:
    try:
        return bool(_ENCODED.search(name)) and bool(unquote(name, errors="strict"))
    except UnicodeDecodeError:
        return False


def _unreadable(text: str) -> UsageError:
    shown = text if len(text) <= 60 else text[:57] + "..."
    return UsageError(f"cannot tell what {shown!r} names", hint=_FORMS)
