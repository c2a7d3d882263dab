"""Targets in plain words: "gpu 5 on node-3", "node-3's gpu5", "job 4711", "pod train-7 in ml".

Marks are TARGET, with the target as `engine.topology.parse_target` reads it and in its shortest
spelling ("node-3:5"), and NAMED for something that looks like one but is not told fully (a pod
without its namespace). A bare word is taken for a host only if it looks like one: a letter and a
digit, and no hardware model, unit, version or ticket.
"""

from __future__ import annotations

import re

from bot.router.spans import Marked
from engine.errors import UsageError
from engine.model import Kind
from engine.topology import Target, parse_target

_START = r"(?<![\w.:/@#-])"
_END = r"(?![\w/@-]|:\S|\.\w)"
_CLUSTER = r"(?:[A-Za-z0-9][A-Za-z0-9._-]{0,62}::)?"
_IP = r"\d{1,3}(?:\.\d{1,3}){3}"
_NAME = r"[A-Za-z][A-Za-z0-9]*(?:[._-]+[A-Za-z0-9]+)*"
_HOST = rf"(?:{_IP}|{_NAME})"
_MACHINE = r"(?:node|host|server|machine|box)"
_INDEX = r"(?P<gpu>\d{1,2}|zero|one|two|three|four|five|six|seven)(?!\w|[.:]\d)"
_GPU = rf"(?:gpus?|graphics card|card|device)[\s_#-]*(?:(?:number|index|idx|id|no\.?|nr\.?)\s*)?[#:=]?\s*{_INDEX}"
_POSSESSIVE = r"(?:'s)?"

_PATHS = re.compile(
    rf"{_START}{_CLUSTER}(?:pod|job|svc|fs)/[A-Za-z0-9/][A-Za-z0-9._/#:-]*[A-Za-z0-9]{_POSSESSIVE}{_END}",
    re.IGNORECASE,
)
_UUIDS = re.compile(
    rf"{_START}{_CLUSTER}(?:GPU-[0-9A-Fa-f][0-9A-Fa-f-]{{3,35}}|MIG-[0-9A-Za-z][0-9A-Za-z/-]{{3,79}})"
    rf"(?:\.\.\.)?{_POSSESSIVE}{_END}",
    re.IGNORECASE,
)
_INDEXED = re.compile(
    rf"{_START}{_CLUSTER}(?P<host>{_HOST}|\[[0-9A-Fa-f:.]{{2,45}}\]):(?P<number>\d{{1,5}})"
    rf"{_POSSESSIVE}(?![\w/@-]|:\S|\.\d)"
)
_PLACE = (
    rf"(?:the\s+)?(?P<machine>{_MACHINE}\s+(?:(?:named|called)\s+)?)?"
    rf"(?P<host>{_MACHINE}[\s#]+\d{{1,4}}|{_CLUSTER}{_HOST}){_POSSESSIVE}"
)
_GPU_ON = re.compile(
    rf"\b{_GPU}(?:\s*[@,(/]\s*|\s+(?:(?P<on>on|of|at|in|from|@)\s+)?){_PLACE}\)?{_END}",
    re.IGNORECASE,
)
_HOST_GPU = re.compile(
    rf"{_START}{_PLACE}(?:\s*[/:,(]\s*|\s+)(?:the\s+|is\s+)?{_GPU}\)?", re.IGNORECASE
)
_POD_IN = re.compile(
    rf"{_START}pod\s+(?P<pod>{_NAME})\s+(?:in|from|of)\s+(?:the\s+)?(?:(?:namespace|ns)\s+)?"
    rf"(?P<namespace>{_NAME})(?:\s+(?:namespace|ns))?{_END}",
    re.IGNORECASE,
)
_POD_PATH = re.compile(rf"{_START}pod\s+(?P<namespace>{_NAME})/(?P<pod>{_NAME}){_END}", re.I)
_RANK = re.compile(
    rf"{_START}rank\s+(?P<rank>\d{{1,6}})\s+(?:of|in|on)\s+(?:the\s+)?(?:slurm\s+)?job\s+#?(?P<job>[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?){_END}",
    re.IGNORECASE,
)
_JOB = re.compile(
    rf"{_START}(?:slurm\s+)?job\s+#?(?P<job>(?=[\w.-]*\d)[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?){_POSSESSIVE}{_END}",
    re.I,
)
_POD = re.compile(rf"{_START}pod\s+(?P<pod>[A-Za-z0-9._-]*[\d-][A-Za-z0-9._-]*){_END}", re.I)
_GPU_ALONE = re.compile(rf"{_START}{_GPU.replace('|device', '').replace('|card', '')}", re.I)
_MACHINE_NAMED = re.compile(
    rf"{_START}(?:{_MACHINE}\s+(?:(?:named|called)\s+)?(?P<host>{_HOST})|(?P<numbered>{_MACHINE}[\s#]+\d{{1,4}}))"
    rf"{_POSSESSIVE}{_END}",
    re.IGNORECASE,
)
_CODED = re.compile(rf"`\s*(?P<host>{_CLUSTER}{_HOST})\s*`")
_BARE = re.compile(rf"{_START}(?P<host>{_CLUSTER}{_HOST}){_POSSESSIVE}{_END}")
_FLEET = re.compile(rf"{_START}(?:(?:the|our|whole|entire)\s+)*fleet{_END}", re.IGNORECASE)

_DIGITS = dict(
    zip(("zero", "one", "two", "three", "four", "five", "six", "seven"), range(8), strict=True)
)
# Words that follow "gpu 5 on" or "node" without naming a host.
_NO_HOST = frozenset(
    "a all an and any are at average be but can did do does down fine fire for from gets had has have"
    " here idle in is it its load looks my no not of off ok on or our out please running seems since"
    " slow so still stuck than that the their there this to up usage was we were when where which why"
    " with yet you your node host server machine box cluster rack xid sxid field mask error code port pid"
    " step epoch line exit http https version down exporter name names gpu gpus how what who status health level pool type".split()
)
_MODEL = re.compile(
    r"(?:[abhltpkv]\d{1,4}[a-z]{0,3}|(?:gb|gh|mi|rtx|gtx)-?\d+\w*|(?:nvidia|tesla|quadro|geforce)-?\w*"
    r"|l40s|a10g|gaudi\d|tpu-?v?\d\w*)(?:-\d+gb|-sxm\d?|-pcie|-nvl\d*)*",
    re.IGNORECASE,
)
_OTHER = re.compile(
    r"(?:pcie?|cuda|nvlink|nvswitch|hbm|gddr|d?dr|fp|bf|tf|int|uint|ipv|python|py|k8s|k3s|s3|ec|x|utf|sha"
    r"|md|llama|gpt|qwen|mistral|mixtral|deepseek|claude|gemini|gemma|phi|bert|t|sd|v|p|q|h|gen|step|epoch"
    r"|rank|layer|batch|bs|tp|pp|dp|ep|lr|seed|sm|mhz|ghz|xid|sxid|gpu|gpus|mig|rev|ver|version|r|os|ubuntu"
    r"|rhel|cu|driver|nccl|torch|pytorch|tensorflow|cudnn|rack|row|room|slot|port|level|phase|part|page"
    r"|line|bit|bits|field|mask|covid|top|mp|log|b|co|web|i|l|n|u|eth|ib|mlx|nvme|sd|cpu|core|socket|numa"
    r"|inc|pr|jira|ops|sre|tkt|ticket|bug|issue|req|chg|prb|sev|cve|figure|fig|table|plan|round|day|week)"
    r"[._-]?v?\d+(?:[._-]?\w+)*",
    re.IGNORECASE,
)
# Stems under which machines are usually named, also where a ticket could be called the same.
_STEMS = re.compile(
    r"(?:node|dgx|hgx|gpu|host|worker|compute|server|cn|srv|ip|box|rig|ws)[a-z]*", re.I
)
_TICKET = re.compile(r"[A-Z]{2,10}-\d+")


def mark_explicit(marked: Marked) -> None:
    """Mark targets whose form alone says that they are: paths, UUIDs, host:index."""
    marked.find("TARGET", _PATHS, lambda found: _whole(found[0]))
    marked.find("TARGET", _UUIDS, _uuid)
    marked.find("TARGET", _INDEXED, _indexed)


def mark_spoken(marked: Marked) -> None:
    """Mark a GPU and its host said in words, jobs and pods."""
    marked.find("TARGET", _RANK, lambda f: _whole(f"job/{f['job']}/rank/{f['rank']}"))
    marked.find("TARGET", _POD_PATH, lambda f: _whole(f"pod/{f['namespace']}/{f['pod']}"))
    marked.find("TARGET", _POD_IN, _pod)
    marked.find("TARGET", _JOB, lambda found: _whole(f"job/{found['job']}"))
    marked.find("NAMED", _POD, lambda found: found[0])
    marked.find("TARGET", _GPU_ON, lambda found: _gpu_of(found, any_word=False))
    marked.find("TARGET", _HOST_GPU, lambda found: _gpu_of(found, any_word=False))
    marked.find("TARGET", _GPU_ON, lambda found: _gpu_of(found, any_word=bool(found["on"])))


def mark_hosts(marked: Marked) -> None:
    """Mark what is left: hosts by their looks, the fleet, a GPU without a host."""
    marked.find("TARGET", _FLEET, lambda _: "fleet")
    marked.find("TARGET", _MACHINE_NAMED, _machine)
    marked.find("TARGET", _CODED, lambda f: _whole(f["host"]) if _may_be_host(f["host"]) else None)
    marked.find("TARGET", _GPU_ALONE, lambda found: f"gpu {_index(found)}")
    marked.find(
        "TARGET", _BARE, lambda f: _whole(f["host"]) if _looks_like_host(f["host"]) else None
    )


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
        return shortest(parse_target(text.removesuffix("'s")))
    except UsageError:
        return None


def _uuid(found: re.Match[str]) -> str | None:
    text = found[0].removesuffix("'s").removesuffix("...").rstrip("-")
    told = text.rpartition("::")[2][4:]
    # "gpu-dead" and "gpu-face" are words.
    return _whole(text) if any(char.isdigit() for char in told) else None


def _indexed(found: re.Match[str]) -> str | None:
    if re.fullmatch(_GPU, found[0], re.IGNORECASE) or found["host"].lower() in _NO_HOST:
        return None
    named = any(char.isdigit() for char in found["host"]) or int(found["number"]) <= 63
    return _whole(found[0]) if named else None


def _index(found: re.Match[str]) -> int:
    word = found["gpu"].lower()
    return _DIGITS[word] if word in _DIGITS else int(word)


def _pod(found: re.Match[str]) -> str | None:
    named = not {found["pod"].lower(), found["namespace"].lower()} & _NO_HOST
    return _whole(f"pod/{found['namespace']}/{found['pod']}") if named else None


def _gpu_of(found: re.Match[str], *, any_word: bool) -> str | None:
    host = _numbered(found["host"])
    fits = _may_be_host(host) if any_word or found["machine"] else _looks_like_host(host)
    return _whole(f"{host}:{_index(found)}") if fits else None


def _machine(found: re.Match[str]) -> str | None:
    host = found["host"] or _numbered(found["numbered"])
    return _whole(host) if _may_be_host(host) and re.search(r"[\d.-]", host) else None


def _numbered(host: str) -> str:
    """Return the usual spelling of "node 3": node-3."""
    return "-".join(re.split(r"[\s#]+", host.strip()))


def _may_be_host(word: str) -> bool:
    return word.lower() not in _NO_HOST and not re.fullmatch(r"gpus?\d*", word, re.IGNORECASE)


def _looks_like_host(word: str) -> bool:
    name = word.rpartition("::")[2]
    if re.fullmatch(_IP, name):
        return all(int(part) < 256 for part in name.split("."))
    if not any(char.isdigit() for char in name) or not _may_be_host(name):
        return False
    first = re.split(r"[\d._-]", name)[0]
    if _STEMS.fullmatch(first):
        return not re.fullmatch(r"gpus?-?\d*", name, re.IGNORECASE)
    if _TICKET.fullmatch(name):
        return False
    return not _MODEL.fullmatch(name) and not _OTHER.fullmatch(name)
