"""What can be decoded, in plain words: "xid 79", "throttle mask 72", "DCGM field 1003", 0x48.

Marks are CODE, written as ``gpuwhy decode`` takes it. A name of several words joined by
underscores counts only if it starts like a metric or a reason.
"""

from __future__ import annotations

import re

from bot.router.spans import Marked

_START = r"(?<![\w.:/-])"
_END = r"(?![\w:/-]|\.\d)"
_NUMBER = r"0x[0-9a-f]{1,16}|\d{1,20}"
_JOINT = r"[\s:=#]*(?:(?:code|error|number|no\.?|id|value|is|of)[\s:=#]+)*"

_CODE = re.compile(
    rf"{_START}(?P<kind>xid|sxid)s?(?:\s+errors?)?{_JOINT}-?(?P<number>\d{{1,6}}){_END}",
    re.IGNORECASE,
)
_FIELD = re.compile(
    rf"{_START}(?:dcgm[\s_-]*)?(?:(?<=dcgm )|(?<=dcgm)|fields?(?:[\s_-]*ids?)?){_JOINT}(?P<number>\d{{1,5}}){_END}",
    re.IGNORECASE,
)
_MASK = re.compile(
    rf"{_START}(?:(?:clocks?[\s_-]*)?(?:throttl(?:e|ing)|events?)(?:[\s_-]*(?:mask|bitmask|reasons?|bits?|active))*"
    rf"|bit[\s-]*mask|mask){_JOINT}(?P<number>{_NUMBER}){_END}",
    re.IGNORECASE,
)
_METRIC = re.compile(
    rf"{_START}(?P<name>(?:DCGM_(?:FI|EXP)_|nvidia_smi_|nvidia_gpu_)\w+)(?:\{{[^}}]*\}})?"
    rf"(?:\s*[=:]?\s*(?P<number>{_NUMBER})(?:\.0)?{_END})?",
    re.IGNORECASE,
)
_CONSTANT = re.compile(
    rf"{_START}(?P<name>nvml[A-Z]\w+|NVML_\w+|DCGM_\w+|vllm:\w+|sglang:\w+|NCCL_\w+){_END}"
)
_HEX = re.compile(rf"{_START}(?P<number>0x[0-9a-f]{{1,16}})(?![\w:/-])", re.IGNORECASE)
_IDENTIFIER = re.compile(
    rf"{_START}(?:gpu|sm|hw|sw|sync|tensor|nvlink\d?|pcie|sxid|xid|ecc|node|power|thermal|clocks?|mem|memory|fb"
    r"|dram|gr|fp16|fp32|fp64|nccl|throttle|display|board|reliability|retired|remapped|row|fabric|dcgm|nvidia"
    rf"|kv|prefix|queue|cpu|ib|storage|low|straggler|collective)(?:_[a-z0-9]+)+(?:\.[a-z0-9_]+)?{_END}",
    re.IGNORECASE,
)
_REASON = re.compile(
    rf"{_START}(?:(?:hw|sw|hardware|software)\s+(?:slowdown|(?:thermal|power)(?:\s+brake|\s+cap)?(?:\s+slowdown)?)"
    rf"|(?:hw\s+)?power\s+brake|sync\s+boost|applications?\s+clocks?\s+settings?){_END}",
    re.IGNORECASE,
)


def mark_codes(marked: Marked) -> None:
    """Mark everything in a text that ``decode`` could be asked about."""
    marked.find("CODE", _CODE, lambda found: f"{found['kind'].lower()} {int(found['number'])}")
    marked.find("CODE", _FIELD, lambda found: f"field {int(found['number'])}")
    marked.find("CODE", _METRIC, _metric)
    marked.find("CODE", _MASK, lambda found: f"throttle {found['number'].lower()}")
    marked.find("CODE", _HEX, lambda found: found["number"].lower())
    marked.find("CODE", _CONSTANT, lambda found: found["name"])
    marked.find("CODE", _IDENTIFIER, lambda found: found[0])


def mark_reasons(marked: Marked) -> None:
    """Mark throttle reasons said in words; they also stand in complaints, so look last."""
    marked.find("REASON", _REASON, lambda found: " ".join(found[0].lower().split()))


def _metric(found: re.Match[str]) -> str:
    return f"{found['name']} {found['number']}" if found["number"] else found["name"]
