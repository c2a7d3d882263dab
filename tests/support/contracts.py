"""The schemas of the answers, made and checked once a process: that takes longer than to use them."""

from __future__ import annotations

from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from engine.schema import schema


@cache
def _validator(name: str) -> Draft202012Validator:
    made = schema(name)
    Draft202012Validator.check_schema(made)
    return Draft202012Validator(made)


def conforms(answer: Any, name: str) -> None:
    """Hold an answer against the schema of a command.

    Raises:
        ValidationError: it does not fit.
    """
    _validator(name).validate(answer)
