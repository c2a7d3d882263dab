"""Clean an answer of what a paste holds besides its findings.

Secrets are masked, and characters that would steer a terminal or reorder text are replaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import partial
from typing import Any

from engine.model import Read
from engine.redact import redact, without_parts

# Control characters but tab and line feed, and the marks that change the direction of text.
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def redacted(answer: Read, secrets: Iterable[str] = ()) -> Read:
    """Return an answer with secrets masked in every text that may quote its input.

    Sources and errata are the knowledge's own words and left as they are.

    Args:
        answer: what was read.
        secrets: those of the input; the start of one may stand where a text was cut.
    """
    found = tuple(sorted(secrets))
    masked, clean = partial(_all, secrets=found), partial(_text, secrets=found)
    return replace(
        answer,
        findings=tuple(
            replace(
                finding,
                says=clean(finding.says),
                action=clean(finding.action),
                entity=masked(finding.entity),
                data=masked(finding.data),
            )
            for finding in answer.findings
        ),
        diagnoses=masked(answer.diagnoses),
        notes=masked(answer.notes),
        unknown=masked(answer.unknown),
    )


def _text(text: str, secrets: tuple[str, ...]) -> str:
    text = redact(_STEERING.sub("\ufffd", text))
    return without_parts(text, secrets) if secrets else text


def _all(value: Any, secrets: tuple[str, ...]) -> Any:
    """Mask the strings inside a value of the model, whatever its depth."""
    if isinstance(value, Enum) or value is None or isinstance(value, int | float):
        return value
    if isinstance(value, str):
        return _text(value, secrets)
    if isinstance(value, dict):
        return {_all(k, secrets): _all(v, secrets) for k, v in value.items()}
    if isinstance(value, list):
        return [_all(v, secrets) for v in value]
    if isinstance(value, tuple):
        return tuple(_all(v, secrets) for v in value)
    if is_dataclass(value) and not isinstance(value, type):
        changed = {
            f.name: new
            for f in fields(value)
            if f.init and (new := _all(getattr(value, f.name), secrets)) != getattr(value, f.name)
        }
        return replace(value, **changed) if changed else value
    return value
