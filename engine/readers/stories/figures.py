"""Figures of a GPU in prose: ``SM clock 345 MHz, power 150 of 700 W, 38 C, mask 0x88``.

How people describe a slow GPU to each other. Only where nothing else of a short text was recognised
are they taken, as readings of one moment, and judged by the rules for metrics: what these find of
them is at most possible. Figures of the past and of others (was, before, twins, idle) are none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from engine.model import Entity, Kind
from engine.readers.base import Context, Result
from engine.readers.mention import SHORT
from engine.readers.readings import Readings

_KIND: Final = "figures in words"
_FLAGS = re.IGNORECASE | re.ASCII
_N = r"(\d{1,5}(?:\.\d{1,3})?)"
# A range counts with its middle; what follows "of" is the limit of what stands before it.
_RANGE = rf"{_N}(?: ?(?:to|-|\u2013) ?{_N})?"
_OF = rf"(?: ?(?:of|/|out of) (?:the |its )?{_N})?"
_CLOCK = re.compile(
    rf"\b(?:SM |GPU |graphics |core )?clocks?\b[^\d.;,\n]{{0,24}}{_RANGE} ?(?:MHz)?{_OF} ?MHz",
    _FLAGS,
)
_NORMAL = re.compile(rf"\((?:normal|normally|max|usually)[^\d)]{{0,8}}{_N}(?: ?MHz)?\)", _FLAGS)
_POWER = re.compile(rf"\bpower\b[^\d.;,\n]{{0,16}}{_RANGE} ?W?{_OF} ?W\b", _FLAGS)
_WATTS = re.compile(rf"\b{_N} W(?:atts?)?\b", _FLAGS)
_DEFAULT = re.compile(rf"\bdefault (?:power )?(?:limit|cap)?[^\d.;,\n]{{0,8}}{_N} ?W\b", _FLAGS)
_TEMP = re.compile(rf"(?<![\d.]){_RANGE} ?(?:\u00b0|deg(?:rees)? ?)?C\b", _FLAGS)
_TEMP_NAMED = re.compile(r"\b(?:GPU )?temp(?:erature)?\b[^\d.;,\n]{0,8}(\d{2,3})\b", _FLAGS)
_MEMORY = re.compile(
    r"\b(?:memory|HBM|MEMORY_TEMP)[^\d.;,\n]{0,16}(\d{2,3}) ?(?:C\b|,|;|$| on)", _FLAGS
)
_UTIL = re.compile(rf"\butil(?:i[sz]ation)?\b[^\d.;,\n]{{0,12}}{_RANGE}", _FLAGS)
_SM = re.compile(r"\bSM active\b[^\d.;,\n]{0,6}(0?\.\d{1,4}|\d{1,3}) ?(%|percent)?", _FLAGS)
_MASK = re.compile(
    r"\b(?:throttle )?(?:mask|reasons?)\b[^\d;,\n]{0,6}(0x[0-9a-f]{1,8}|\d{1,5})\b", _FLAGS
)
# Names of reasons as tools print them, and their bits (nvml.h nvmlClocksEventReason*).
_REASONS: Final = (
    (re.compile(r"\bSW (?:power cap|power)\b", _FLAGS), 0x4),
    (re.compile(r"\bHW thermal\b", _FLAGS), 0x48),
    (re.compile(r"\bSW thermal\b", _FLAGS), 0x20),
    (re.compile(r"\bpower brake\b", _FLAGS), 0x88),
)
_NOT_ACTIVE = re.compile(r"\b(?:no|not|never|without|inactive)\b", _FLAGS)
_MODEL = re.compile(
    r"\b(A100|A800|H100|H800|H200|H20|B100|B200|B300|GB10|L40S?|L4|A10|V100)\b", _FLAGS
)
_NAMES: Final = {"H100": "NVIDIA H100 80GB HBM3", "A100": "NVIDIA A100-SXM4-80GB"}
_GPU = re.compile(r"\bGPU ?#?(\d{1,2})\b ?:", _FLAGS)
# Beside such words a figure is of another time or another GPU.
_OTHER = re.compile(
    r"\b(?:was|were|before|normal(?:ly)?|usually|idle|others?|twins?|siblings?|elsewhere|where|expected)\b",
    _FLAGS,
)
_LEAST: Final = 3


def figures_in(start: bytes, context: Context) -> Result:
    """Return what the rules make of the figures in a short text, empty if there are too few.

    Args:
        start: the text, whole if it is short.
        context: its judge says what the figures show.
    """
    if len(start) > SHORT or b"CCL" in start:  # logs of collectives have their own reader
        return Result()
    text = start.decode("utf-8", "replace")
    named = _MODEL.search(text)
    model = None if named is None else _NAMES.get(named[1].upper(), f"NVIDIA {named[1].upper()}")
    readings = Readings(context.catalogue, together=True)
    told = 0
    for index, part in _parts(text):
        found = dict(_figures(part))
        if len(found) < _LEAST or not found.keys() & {
            "sm_clock",
            "power_usage",
            "throttle_reasons",
        }:
            continue
        name = "the GPU" if index is None else f"GPU {index}"
        entity = Entity(Kind.GPU, name, gpu=0 if index is None else index, model=model)
        for signal, value in found.items():
            readings.add(signal, value, entity=entity)
        told += 1
    if not told:
        return Result()
    result = readings.judge(context.diagnose)
    result.kinds = [_KIND]
    return result


def _parts(text: str) -> Iterator[tuple[int | None, str]]:
    """Yield what is said of each GPU that is named by number, or the whole text."""
    marks = list(_GPU.finditer(text))
    if not marks:
        yield None, text
        return
    for mark, after in zip(marks, [*marks[1:], None], strict=True):
        yield int(mark[1]), text[mark.end() : after.start() if after else len(text)]


def _figures(text: str) -> Iterator[tuple[str, float]]:
    """Yield (signal, value) of the first figure of each kind, in the signal's unit."""
    if clock := _first(_CLOCK, text):
        yield "sm_clock", _middle(clock)
        normal = _NORMAL.search(text)
        if clock[3] or normal:
            yield "max_sm_clock", float(clock[3] or (normal[1] if normal else 0))
    if power := _first(_POWER, text) or _first(_WATTS, text):
        yield "power_usage", _middle(power)
        if power.re is _POWER and power[3]:
            yield "enforced_power_limit", float(power[3])
    if default := _DEFAULT.search(text):
        yield "power_limit_default", float(default[1])
    if temp := _first(_TEMP_NAMED, text) or _first(_TEMP, text):
        yield "gpu_temp", _middle(temp)
    if memory := _first(_MEMORY, text):
        yield "memory_temp", float(memory[1])
    if util := _first(_UTIL, text):
        yield "gpu_util", _middle(util)
    if active := _first(_SM, text):
        yield "sm_active", float(active[1]) / (100.0 if active[2] else 1.0)
    mask = _MASK.search(text)
    bits = 0 if mask is None else int(mask[1], 0)
    for words, bit in _REASONS:
        found = _first(words, text)
        if found and not _NOT_ACTIVE.search(text, max(0, found.start() - 12), found.end() + 16):
            bits |= bit
    if mask is not None or bits:
        yield "throttle_reasons", float(bits)


def _first(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """Return the first figure that is of the GPU itself, and of now."""
    for found in pattern.finditer(text):
        clause = max(text.rfind(mark, 0, found.start()) for mark in ",;\n(") + 1
        if not _OTHER.search(text, clause, found.start()):
            return found
    return None


def _middle(found: re.Match[str]) -> float:
    """Return the number of a match, or the middle of its range."""
    low = float(found[1])
    several = found.re.groups > 1 and found[2]
    return (low + float(found[2])) / 2 if several else low
