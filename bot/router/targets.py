"""Targets in plain words: "gpu 5 on node-3", "node-3's gpu5", "job 4711", "pod train-7 in ml".

Marks are TARGET, with the target as `engine.topology.parse_target` reads it and in its shortest
spelling ("node-3:5"), and NAMED for something that is not told fully (a pod without a namespace).
"""

from __future__ import annotations

import re

from bot.router.hostnames import looks_like_host, may_name_host
from bot.router.spans import Marked, pattern
from engine.errors import UsageError
from engine.model import Kind
from engine.topology import MAX_GPU_INDEX, Target, parse_target

_START = r"(?<![\w.:/@#-])"
_END = r"(?:'s)?(?![\w/@-]|:\S|\.\w)"
_CLUSTER = r"(?:[A-Za-z0-9][A-Za-z0-9._-]{0,62}::)?"
_NAME = r"[A-Za-z][A-Za-z0-9]*(?:[._-]+[A-Za-z0-9]+)*"
_ID = r"[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?"
_HOST = rf"(?:\d{{1,3}}(?:\.\d{{1,3}}){{3}}|{_NAME})"
_MACHINE = r"(?:node|host|server|machine|box)"
_NUMBERED = rf"{_MACHINE}[\s#]+\d{{1,4}}"

_DIGITS = {
    word: number
    for number, word in enumerate(("zero", "one", "two", "three", "four", "five", "six", "seven"))
}
_INDEX = (
    r"[\s_#-]*(?:(?:number|index|idx|id|no\.?|nr\.?)\s*)?[#:=]?\s*"
    rf"(?P<gpu>\d{{1,2}}|{'|'.join(_DIGITS)})(?!\w|[.:]\d)"
)
_GPU = rf"(?:gpus?|card|device){_INDEX}"
_PLACE = (
    rf"(?:the\s+)?(?P<machine>{_MACHINE}\s+(?:(?:named|called)\s+)?)?"
    rf"(?P<host>{_NUMBERED}|{_CLUSTER}{_HOST})"
)

_PATHS = pattern(
    rf"{_START}{_CLUSTER}(?:pod|job|svc|fs)/[A-Za-z0-9/][A-Za-z0-9._/#:%-]*[A-Za-z0-9]{_END}"
)
# Names with blanks in them are told by what stands around them.
_QUOTED = pattern(rf"\"({_CLUSTER}(?:job|svc|fs)/[^\"\n]+)\"|`({_CLUSTER}(?:job|svc|fs)/[^`\n]+)`")
_UUIDS = pattern(
    rf"{_START}(?P<id>{_CLUSTER}(?:GPU-[0-9A-F][0-9A-F-]{{3,35}}|MIG-[0-9A-Z][0-9A-Z/-]{{3,79}}))",
    rf"(?:\.\.\.)?{_END}",
)
_INDEXED = pattern(
    rf"{_START}(?P<target>{_CLUSTER}(?P<host>{_HOST}|\[[0-9A-F:.]{{2,45}}\])",
    r":(?P<number>\d{1,5}))(?:'s)?(?![\w/@-]|:\S|\.\d)",
)
_GPU_ON = pattern(
    rf"\b{_GPU}(?:\s*[@,(/]\s*|\s+(?:(?P<on>on|of|at|in|from|@)\s+)?){_PLACE}\)?{_END}"
)
_HOST_GPU = pattern(rf"{_START}{_PLACE}(?:'s)?(?:\s*[/:,(]\s*|\s+)(?:the\s+|is\s+)?{_GPU}\)?")
_GPU_ALONE = pattern(rf"{_START}gpus?{_INDEX}")
_MACHINE_NAMED = pattern(
    rf"{_START}(?:(?P<numbered>{_NUMBERED})",
    rf"|{_MACHINE}\s+(?:(?:named|called)\s+)?(?P<host>{_HOST})){_END}",
)
_INLINE_CODE = pattern(rf"`\s*(?P<host>{_CLUSTER}{_HOST})\s*`")
_BARE = pattern(rf"{_START}(?P<host>{_CLUSTER}{_HOST}){_END}")
_FLEET = pattern(rf"{_START}(?:(?:the|our|whole|entire)\s+)*fleet{_END}")

_POD_IN = pattern(
    rf"{_START}pod\s+(?P<pod>{_NAME})\s+(?:in|from|of)\s+(?:the\s+)?(?:(?:namespace|ns)\s+)?",
    rf"(?P<namespace>{_NAME})(?:\s+(?:namespace|ns))?{_END}",
)
_POD_PATH = pattern(rf"{_START}pod\s+(?P<namespace>{_NAME})/(?P<pod>{_NAME}){_END}")
_POD = pattern(rf"{_START}pod\s+[A-Za-z0-9._-]*[\d-][A-Za-z0-9._-]*{_END}")
_JOB = pattern(rf"{_START}(?:slurm\s+)?job\s+#?(?P<job>(?=[\w.-]*\d){_ID}){_END}")
_RANK = pattern(
    rf"{_START}rank\s+(?P<rank>\d{{1,6}})\s+(?:of|in|on)\s+(?:the\s+)?(?:slurm\s+)?job\s+",
    rf"#?(?P<job>{_ID}){_END}",
)


def mark_quoted(marked: Marked) -> None:
    """Mark targets in quotation marks, whose names may hold blanks."""
    marked.find("TARGET", _QUOTED, lambda found: _whole(found[1] or found[2]))


def mark_explicit(marked: Marked) -> None:
    """Mark targets whose form alone says that they are: paths, UUIDs, host:index."""
    marked.find("TARGET", _PATHS, lambda found: _whole(found[0].removesuffix("'s")))
    marked.find("TARGET", _UUIDS, _uuid)
    marked.find("TARGET", _INDEXED, _indexed)


def mark_spoken(marked: Marked) -> None:
    """Mark jobs, pods, and a GPU with its host, said in words."""
    marked.find("TARGET", _RANK, lambda f: _whole(f"job/{f['job']}/rank/{f['rank']}"))
    marked.find("TARGET", _POD_PATH, _pod)
    marked.find("TARGET", _POD_IN, _pod)
    marked.find("TARGET", _JOB, lambda found: _whole(f"job/{found['job']}"))
    marked.find("NAMED", _POD, lambda found: found[0])
    marked.find("TARGET", _GPU_ON, lambda found: _gpu_of(found, any_word=False))
    marked.find("TARGET", _HOST_GPU, lambda found: _gpu_of(found, any_word=False))
    marked.find("TARGET", _GPU_ON, lambda found: _gpu_of(found, any_word=bool(found["on"])))


def mark_hosts(marked: Marked) -> None:
    """Mark what is left: the fleet, hosts by their looks, a GPU without a host."""
    marked.find("TARGET", _FLEET, lambda _: "fleet")
    marked.find("TARGET", _MACHINE_NAMED, _machine)
    marked.find("TARGET", _INLINE_CODE, _inline_code)
    marked.find("TARGET", _GPU_ALONE, lambda found: _whole(f"gpu {_index(found)}"))
    marked.find("TARGET", _BARE, _bare)


def shortest(target: Target) -> str:
    """Return a target in its shortest spelling."""
    if target.host is None:
        return target.text if target.gpu is None else f"gpu {target.gpu}"
    index = "" if target.gpu is None else f":{target.gpu}"
    cluster = f"{target.cluster}::" if target.cluster else ""
    return f"{cluster}{target.host}{index}"


def is_host(target: str) -> bool:
    """Return whether a target is a mere host; those are told by their looks only."""
    return parse_target(target).kind is Kind.NODE


def _whole(text: str) -> str | None:
    try:
        return shortest(parse_target(text))
    except UsageError:
        return None


def _uuid(found: re.Match[str]) -> str | None:
    text = found["id"].rstrip("-")
    # "gpu-dead" and "gpu-face" are words.
    told = text.rpartition("::")[2][4:]
    return _whole(text) if any(char.isdigit() for char in told) else None


def _indexed(found: re.Match[str]) -> str | None:
    """Read host:index; "note:9400" without a digit in the name is no host with a port."""
    host = found["host"]
    port = int(found["number"]) > MAX_GPU_INDEX and not any(char.isdigit() for char in host)
    return None if port or not may_name_host(host) else _whole(found["target"])


def _pod(found: re.Match[str]) -> str | None:
    named = may_name_host(found["pod"]) and may_name_host(found["namespace"])
    return _whole(f"pod/{found['namespace']}/{found['pod']}") if named else None


def _gpu_of(found: re.Match[str], *, any_word: bool) -> str | None:
    host = _hyphened(found["host"])
    fits = may_name_host(host) if any_word or found["machine"] else looks_like_host(host)
    return _whole(f"{host}:{_index(found)}") if fits else None


def _machine(found: re.Match[str]) -> str | None:
    """Read "node 3" and "host alpha-b"; a plain word after "node" is more likely a verb."""
    host = _hyphened(found["numbered"] or found["host"])
    return _whole(host) if may_name_host(host) and re.search(r"[\d.-]", host) else None


def _inline_code(found: re.Match[str]) -> str | None:
    host = found["host"]
    hyphened = "-" in host and "_" not in host and not re.search(r"\d", host)
    return _whole(host) if hyphened or looks_like_host(host) else None


def _bare(found: re.Match[str]) -> str | None:
    return _whole(found["host"]) if looks_like_host(found["host"]) else None


def _index(found: re.Match[str]) -> int:
    word = found["gpu"].lower()
    return _DIGITS[word] if word in _DIGITS else int(word)


def _hyphened(host: str) -> str:
    """Return the usual spelling of "node 3": node-3."""
    return "-".join(re.split(r"[\s#]+", host.strip()))
