"""Incidents as they are kept between two looks: plain JSON types, and back."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from engine.errors import InputError
from engine.history.tracked import Failure, Tracked
from engine.model import to_json


def tracked_to_json(one: Tracked) -> dict[str, Any]:
    """Return an incident as JSON types; numbers that JSON cannot write become null."""
    document: dict[str, Any] = to_json(one)
    return document


def tracked_from_json(document: Any) -> Tracked:
    """Return the incident that `tracked_to_json` wrote.

    Raises:
        InputError: it is no such document.
    """
    try:
        diagnosis = dict(document["diagnosis"])
        diagnosis["class_"] = diagnosis.pop("class")
        return _tracked().validate_python({**document, "diagnosis": diagnosis})
    except (ValidationError, KeyError, TypeError, ValueError):
        raise InputError("a stored incident cannot be read", hint="start with new state") from None


def failure_to_json(failure: Failure | None) -> dict[str, Any] | None:
    """Return a failure as JSON types."""
    return None if failure is None else to_json(failure)


def failure_from_json(document: Any) -> Failure | None:
    """Return the failure that `failure_to_json` wrote.

    Raises:
        InputError: it is no such document.
    """
    if document is None:
        return None
    try:
        return _failure().validate_python(document)
    except ValidationError:
        raise InputError("a stored failure cannot be read", hint="start with new state") from None


@cache
def _tracked() -> TypeAdapter[Tracked]:
    return TypeAdapter(Tracked)


@cache
def _failure() -> TypeAdapter[Failure]:
    return TypeAdapter(Failure)
