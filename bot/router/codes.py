"""What can be decoded, in plain words: "xid 79", "throttle mask 72", "DCGM field 1003", 0x48.

Marks are CODE, written as ``gpuwhy decode`` takes it, and REASON for a throttle reason said in
words, which complaints hold too. A name joined by underscores is a code only if it starts like a
metric or a reason.
"""

from __future__ import annotations

import re

from bot.router.spans import Marked, any_of, pattern

_START = r"(?<![\w.:/-])"
_END = r"(?![\w:/-]|\.\d)"
_NUMBER = r"(?P<number>0x[0-9a-f]{1,16}|\d{1,20})"
_JOINT = r"[\s:=#]*(?:(?:code|error|number|no\.?|id|value|is|of)[\s:=#]+)*"

_CODE = pattern(
    rf"{_START}(?P<kind>xid|sxid)s?(?:\s+errors?)?{_JOINT}-?(?P<number>\d{{1,6}}){_END}"
)
_FIELD = pattern(
    rf"{_START}(?:dcgm[\s_-]*)?(?:(?<=dcgm )|(?<=dcgm)|fields?(?:[\s_-]*ids?)?)",
    rf"{_JOINT}(?P<number>\d{{1,5}}){_END}",
)
_MASK = pattern(
    rf"{_START}(?:(?:clocks?[\s_-]*)?(?:throttl(?:e|ing)|events?)",
    r"(?:[\s_-]*(?:mask|bitmask|reasons?|bits?|active))*|bit[\s-]*mask|mask)",
    rf"{_JOINT}{_NUMBER}{_END}",
)
_METRIC = pattern(
    rf"{_START}(?P<name>(?:DCGM_(?:FI|EXP)_|nvidia_smi_|nvidia_gpu_)\w+)(?:\{{[^}}]*\}})?",
    rf"(?:\s*[=:]?\s*{_NUMBER}(?:\.0)?{_END})?",
)
# Case matters: these are constants and metrics as their owners spell them.
_CONSTANT = re.compile(
    rf"{_START}(?:nvml[A-Z]\w+|NVML_\w+|DCGM_\w+|NCCL_\w+|(?:vllm|sglang):\w+){_END}"
)
_HEXADECIMAL = pattern(rf"{_START}0x[0-9a-f]{{1,16}}(?![\w:/-])")
_IDENTIFIER = pattern(
    _START,
    any_of(
        "gpu sm hw sw sync tensor nvlink nvlink5 pcie sxid xid ecc node power thermal clock clocks",
        "mem memory fb dram gr fp16 fp32 fp64 nccl throttle display board reliability retired",
        "remapped row fabric dcgm nvidia kv prefix queue cpu ib storage low straggler collective",
    ),
    rf"(?:_[a-z0-9]+)+(?:\.[a-z0-9_]+)?{_END}",
)
_REASON = pattern(
    rf"{_START}(?:(?:hw|sw|hardware|software)\s+",
    r"(?:slowdown|(?:thermal|power)(?:\s+brake|\s+cap)?(?:\s+slowdown)?)",
    rf"|(?:hw\s+)?power\s+brake|sync\s+boost|applications?\s+clocks?\s+settings?){_END}",
)


def mark_codes(marked: Marked) -> None:
    """Mark everything in a text that ``decode`` could be asked about."""
    marked.find("CODE", _CODE, lambda found: f"{found['kind'].lower()} {int(found['number'])}")
    marked.find("CODE", _FIELD, lambda found: f"field {int(found['number'])}")
    marked.find("CODE", _METRIC, _metric)
    marked.find("CODE", _MASK, lambda found: f"throttle {found['number'].lower()}")
    marked.find("CODE", _HEXADECIMAL, lambda found: found[0].lower())
    marked.find("CODE", _CONSTANT, lambda found: found[0])
    marked.find("CODE", _IDENTIFIER, lambda found: found[0])


def mark_reasons(marked: Marked) -> None:
    """Mark throttle reasons said in words; look last, since they are also parts of names."""
    marked.find("REASON", _REASON, lambda found: " ".join(found[0].lower().split()))


def _metric(found: re.Match[str]) -> str:
    return f"{found['name']} {found['number']}" if found["number"] else found["name"]
