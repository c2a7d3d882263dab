"""JSON Schemas of the answers, generated from the model classes.

What `engine.model.to_json` does to the classes is mirrored here: ``class_`` is written ``class``,
``schema`` is a constant and comes first, an `Incident` is its diagnosis plus ``members``, and
entities and decoded items leave out what is not known.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from pydantic import TypeAdapter

from engine.capture.plan import CapturePlan, CaptureRun
from engine.diagnosis.whynotmodel import WhyNot
from engine.errors import UsageError
from engine.history import Event
from engine.history.replaymodel import Backtest
from engine.lookup.model import Ask, Calculation
from engine.model import Decode, Read, Sweep, Why
from engine.nccl.model import NcclStats

ANSWERS: dict[str, type] = {
    "why": Why,
    "sweep": Sweep,
    "watch": Event,
    "decode": Decode,
    "read": Read,
    "nccl-stats": NcclStats,
    "ask": Ask,
    "calc": Calculation,
    "capture-plan": CapturePlan,
    "capture-run": CaptureRun,
    "rules-why-not": WhyNot,
    "rules-backtest": Backtest,
}
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_SPARSE = ("Entity", "Item")


def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a command's answer.

    Raises:
        UsageError: no such answer.
    """
    if name not in ANSWERS:
        raise UsageError(f"no schema {name!r}", hint=f"there are {', '.join(sorted(ANSWERS))}")
    model = ANSWERS[name]
    made = TypeAdapter(model).json_schema(mode="serialization")
    parts = made.pop("$defs", {})
    for part, body in parts.items():
        _adapt(body, sparse=part in _SPARSE)
    if "Incident" in parts:
        parts["Incident"] = _incident(parts)
    _adapt(made, sparse=False)
    identity = next(f.default for f in fields(model) if f.name == "schema")
    made["properties"]["schema"] = {"const": identity}
    made["properties"] = {"schema": made["properties"].pop("schema"), **made["properties"]}
    return {"$schema": _DIALECT, "$id": identity, "$defs": parts, **made}


def _adapt(body: dict[str, Any], *, sparse: bool) -> None:
    """Write an object's schema as it comes out of `to_json`."""
    if "properties" not in body:
        return
    found = {key.rstrip("_"): value for key, value in body["properties"].items()}
    for value in found.values():
        value.pop("default", None)
        value.pop("title", None)
    body["properties"] = found
    body["additionalProperties"] = False
    optional = {key for key, value in found.items() if sparse and _nullable(value)}
    body["required"] = [key for key in found if key not in optional]


def _nullable(value: dict[str, Any]) -> bool:
    return any(option.get("type") == "null" for option in value.get("anyOf", ()))


def _incident(parts: dict[str, Any]) -> dict[str, Any]:
    diagnosis = parts["Diagnosis"]
    members = parts["Incident"]["properties"]["members"]
    return {
        **diagnosis,
        "title": "Incident",
        "properties": {**diagnosis["properties"], "members": members},
        "required": [*diagnosis["required"], "members"],
    }
