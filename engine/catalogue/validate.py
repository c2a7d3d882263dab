"""From what pydantic finds to problems with a place, the name that was meant, and the fix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from engine.catalogue.nearest import did_you_mean, nearest
from engine.catalogue.ruleschema import DURATION_PATTERN, REFERENCE_PATTERN
from engine.catalogue.schema import LINK_PATTERN, METRIC_PATTERN, NAME_PATTERN
from engine.catalogue.vendorschema import MACRO_PATTERN
from engine.catalogue.yamlfile import Document, Steps, describe
from engine.errors import Problem

_WANTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}


def validate(model: type[BaseModel], value: Any, document: Document, path: Steps) -> list[Problem]:
    """Check a value of a document against a model; return what is wrong, in file order."""
    try:
        model.model_validate(value)
    except ValidationError as error:
        found: dict[Steps, list[ErrorDetails]] = {}
        for detail in error.errors(include_url=False):
            found.setdefault(_inside(detail, value), []).append(detail)
        return [_problem(model, document, path, at, details) for at, details in found.items()]
    return []


def field_names(model: type[BaseModel]) -> list[str]:
    """Return the keys of a model as written in YAML, in their fixed order."""
    return [field.alias or name for name, field in model.model_fields.items()]


def _inside(detail: ErrorDetails, value: Any) -> Steps:
    """Return the part of an error's location that exists in the data.

    Pydantic adds the names of union members; a missing key counts as existing.
    """
    steps: list[str | int] = []
    for step in detail["loc"]:
        here: Mapping[Any, Any] = {}
        if isinstance(value, dict):
            here = value
        elif isinstance(value, list):
            here = dict(enumerate(value))
        if step not in here:
            if detail["type"] == "missing" and isinstance(value, dict):
                steps.append(step)
            break
        value = here[step]
        steps.append(step)
    return tuple(steps)


def _problem(
    model: type[BaseModel], document: Document, path: Steps, at: Steps, details: list[ErrorDetails]
) -> Problem:
    detail = details[0]
    kind, value = detail["type"], detail["input"]
    name = f"'{at[-1]}'" if at and isinstance(at[-1], str) else "this"
    where = (*path, *at)
    if kind == "missing":
        return document.problem(where[:-1], f"{name} is missing", f"add '{at[-1]}:'")
    if kind == "extra_forbidden":
        known = field_names(_owner(model, at[:-1]))
        hint = did_you_mean(str(at[-1]), known, otherwise=f"allowed here: {', '.join(known)}")
        return document.problem(where, f"unknown key {name}", hint, key=True)
    if kind == "literal_error":
        options = [str(option) for option in _literal_options(model, at)]
        best = nearest(str(value), options, 1)
        hint = f"did you mean '{best[0]}'?" if best else ""
        expected = f"one of {', '.join(options)}" if options else detail["msg"]
        return document.problem(where, f"{name} must be {expected}; found {describe(value)}", hint)
    wanted = " or ".join(dict.fromkeys(_WANTED[d["type"]] for d in details if d["type"] in _WANTED))
    if wanted:
        hint = f"write {wanted}" if at else "write 'key: value' lines"
        if "text" in wanted and isinstance(value, int | float):
            hint = "put it in quotes"
        elif wanted == "a list" and isinstance(value, str):
            hint = f"write [{value}]" if len(value) < 40 else "write it as a list item: '- ...'"
        return document.problem(where, f"{name} must be {wanted}, found {describe(value)}", hint)
    if kind == "string_pattern_mismatch":
        pattern = detail.get("ctx", {}).get("pattern", "")
        hint = _PATTERN_HINTS.get(pattern, f"it must match {pattern}")
        return document.problem(where, f"{name} is malformed: {describe(value)}", hint)
    if kind in {"string_too_short", "too_short"} and not value:
        return document.problem(where, f"{name} is empty", "fill it in, or remove the key")
    message = detail["msg"].removeprefix("Value error, ")
    if not detail["type"].startswith(("string_", "too_", "greater_", "less_")):
        return document.problem(where, f"{name}: {message}" if at else message)
    said = message.replace("Input should", "it should").replace("String should", "it should")
    return document.problem(where, f"{name} is out of bounds: {said}; found {describe(value)}")


_PATTERN_HINTS = {
    NAME_PATTERN: "use lower-case letters, digits and underscores",
    LINK_PATTERN: "write CONCERN/ID, such as xid/79",
    MACRO_PATTERN: "write a macro of dcgm_fields.h, such as DCGM_FI_DEV_SM_CLOCK",
    METRIC_PATTERN: "write a metric name as Prometheus allows it",
    REFERENCE_PATTERN: "write a symptom's id, or cause/ and a cause's id",
    DURATION_PATTERN: "write a number and s, m or h, such as 90s or 5m",
}


def _owner(model: type[BaseModel], at: Steps) -> type[BaseModel]:
    """Return the model that describes the mapping at a location."""
    for step in at:
        if isinstance(step, str):
            inner = next(_models(_annotation(model, step)), None)
            if inner is None:
                return model
            model = inner
    return model


def _annotation(model: type[BaseModel], key: str) -> Any:
    for name, field in model.model_fields.items():
        if key in {name, field.alias}:
            return field.annotation
    return None


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)


def _literal_options(model: type[BaseModel], at: Steps) -> list[Any]:
    """Return what a `Literal` at a location allows, true and false as YAML writes them."""
    key = next((step for step in reversed(at) if isinstance(step, str)), "")
    parent = at[: at.index(key)] if key in at else ()
    annotation = _annotation(_owner(model, parent), key)
    options = (str(o).lower() if isinstance(o, bool) else o for o in _leaves(annotation))
    return list(dict.fromkeys(options))


def _leaves(annotation: Any) -> Iterator[Any]:
    for argument in get_args(annotation):
        if isinstance(argument, str | bool | int):
            yield argument
        elif argument is not type(None):
            yield from _leaves(argument)
