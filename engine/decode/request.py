"""Reading what was typed after ``gpuwhy decode``: a kind, a number, a name."""

from __future__ import annotations

import re
from dataclasses import dataclass

from engine.errors import UsageError

MAX_CHARACTERS = 200
_MAX_NUMBER = 2**64

# What people write before a number or a name, and the kind of candidate it asks for.
KINDS = {
    **dict.fromkeys(
        (
            "throttle",
            "throttle_mask",
            "throttle_reason",
            "throttle_reasons",
            "clock_throttle_reasons",
            "clocks_throttle_reasons",
            "clocks_throttle_reasons_active",
            "clock_event",
            "clock_event_reasons",
            "clocks_event_reasons",
            "clocks_event_reasons_active",
            "mask",
            "bitmask",
        ),
        "throttle",
    ),
    **dict.fromkeys(("xid", "nvrm_xid", "xid_error"), "xid"),
    **dict.fromkeys(("sxid", "nvswitch", "nvswitch_sxid"), "sxid"),
    **dict.fromkeys(
        ("field", "field_id", "dcgm", "dcgm_field", "dcgm_field_id", "dcgm_fi"), "dcgm_field"
    ),
    **dict.fromkeys(("metric", "signal", "series"), "metric"),
    **dict.fromkeys(("nccl_variable", "variable", "env", "environment_variable"), "nccl_variable"),
    **dict.fromkeys(("flag", "option"), "flag"),
    **dict.fromkeys(("tool", "command"), "tool"),
    **dict.fromkeys(("report", "nsys_report"), "report"),
    **dict.fromkeys(("model", "gpu_model", "gpu"), "gpu_model"),
    **dict.fromkeys(("cause", "diagnosis"), "cause"),
}

_NUMBER = re.compile(r"(?:0[xX][0-9a-fA-F]+|[0-9]+)", re.ASCII)
_DECIMAL = re.compile(r"[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+", re.ASCII)
_SPLIT = re.compile(r"[\s:=,;#()\[\]]+")
_WORD_AND_NUMBER = re.compile(r"([A-Za-z_]+?)[-_]?([0-9]+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Number:
    """A whole number from 0 to 2^64 - 1, and whether it was written in hexadecimal."""

    value: int
    hexadecimal: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked: ``text`` is the input with single spaces.

    ``before`` are the words in front of a final number, ``number`` is that number.
    """

    text: str
    before: str = ""
    number: Number | None = None


def read_request(text: str) -> Request:
    """Read what was typed.

    Raises:
        UsageError: nothing, too much, several numbers, or a number that can be no code or mask.
    """
    if len(text) > MAX_CHARACTERS:
        raise UsageError(
            f"decode takes one thing, not {len(text)} characters",
            hint="to read a log or other pasted text use: gpuwhy read",
        )
    clean = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    tokens = [token for token in _SPLIT.split(clean) if token]
    if not tokens:
        raise UsageError("nothing to decode", hint="for example: gpuwhy decode 0x48")
    numbers = [number for number in map(_number, tokens) if number is not None]
    if len(numbers) > 1:
        raise UsageError(
            f"decode takes one thing, and '{clean}' holds {len(numbers)} numbers",
            hint="ask for each alone; to read a log line use: gpuwhy read",
        )
    if numbers and _number(tokens[-1]) is not None:
        return Request(clean, " ".join(tokens[:-1]), numbers[0])
    joined = _WORD_AND_NUMBER.fullmatch(clean)
    if joined and joined[1].lower() in KINDS:
        return Request(clean, joined[1], _number(joined[2]))
    return Request(clean)


def _number(token: str) -> Number | None:
    """Return the number that a token is, or None for any other word.

    Exporters and Prometheus print whole numbers as ``72``, ``72.0`` or ``7.2e+01`` alike.

    Raises:
        UsageError: it is a number, but none that could be a code, a field or a mask.
    """
    if token[0] in "-+" and token[1:2].isascii() and token[1:2].isdigit():
        if token[0] == "-":
            raise UsageError(f"'{token}' is negative", hint="masks, codes and fields count from 0")
        token = token[1:]
    if token.lower() == "0x" or (token[:2].lower() == "0x" and not _NUMBER.fullmatch(token)):
        raise UsageError(f"'{token}' is no hexadecimal number", hint="write it as in 0x48")
    if _NUMBER.fullmatch(token):
        hexadecimal = token[:2].lower() == "0x"
        value = int(token, 16 if hexadecimal else 10)
    elif _DECIMAL.fullmatch(token):
        hexadecimal = False
        value = _whole(token)
    else:
        return None
    if value >= _MAX_NUMBER:
        raise UsageError(f"'{token}' has more than 64 bits", hint="masks have at most 64")
    return Number(value, hexadecimal)


def _whole(token: str) -> int:
    value = float(token)
    if value >= _MAX_NUMBER or not value.is_integer():
        raise UsageError(
            f"'{token}' is no whole number", hint="masks, codes and fields are whole numbers"
        )
    return int(value)
