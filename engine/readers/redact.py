"""Clean an answer of what a paste holds besides its findings.

Secrets are masked, and characters that would steer a terminal or reorder text are replaced.
"""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any, TypeVar, cast

from engine.model import Read
from engine.redact import redact

T = TypeVar("T")

# Control characters but tab and line feed, and the marks that change the direction of text.
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def redacted(answer: Read) -> Read:
    """Return an answer with secrets masked in every text that may quote its input.

    Sources and errata are the knowledge's own words and left as they are.
    """
    return replace(
        answer,
        findings=tuple(
            replace(
                finding,
                says=_clean(finding.says),
                action=_clean(finding.action),
                entity=_masked(finding.entity),
                data=_masked(finding.data),
            )
            for finding in answer.findings
        ),
        diagnoses=_masked(answer.diagnoses),
        notes=_masked(answer.notes),
        unknown=_masked(answer.unknown),
    )


def _clean(text: str) -> str:
    return redact(_STEERING.sub("\ufffd", text))


def _masked(value: T) -> T:
    """Mask the strings inside a value of the model, whatever its depth."""
    return cast("T", _any(value))


def _any(value: Any) -> Any:
    if isinstance(value, Enum) or value is None or isinstance(value, int | float):
        return value
    if isinstance(value, str):
        return _clean(value)
    if isinstance(value, dict):
        return {_any(k): _any(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_any(v) for v in value]
    if isinstance(value, tuple):
        return tuple(_any(v) for v in value)
    if is_dataclass(value) and not isinstance(value, type):
        changed = {
            f.name: new
            for f in fields(value)
            if f.init and (new := _any(old := getattr(value, f.name))) is not old and new != old
        }
        return replace(value, **changed) if changed else value
    return value
