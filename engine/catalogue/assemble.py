"""From validated plain data to the `Catalogue`. Standard library only.

The data has passed `engine.catalogue.schema`; here is no checking, only building.
"""

from __future__ import annotations

from typing import Any

from engine.catalogue.parts import Entry, Knowledge, Rules, RuleSource
from engine.catalogue.types import (
    AlternativeRule,
    Catalogue,
    CauseInfo,
    CauseRule,
    GpuModel,
    NextStep,
    Pattern,
    RuleTest,
    Signal,
    Spelling,
    SymptomRule,
)
from engine.model import Class, Confidence, Severity

_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def assemble(hash_: str, knowledge: Knowledge, rules: Rules | None = None) -> Catalogue:
    """Build the catalogue.

    Args:
        hash_: content hash of all files it comes from.
        knowledge: validated entries.
        rules: validated rules whose references resolve; None leaves them out.
    """
    entries = knowledge.entries
    taxonomy = {key: cause_info(entry) for key, entry in entries.get("taxonomy", {}).items()}
    origins = {
        f"{concern}/{key}": place.file
        for concern, found in knowledge.places.items()
        for key, place in found.items()
    }
    symptoms: dict[str, SymptomRule] = {}
    causes: dict[str, CauseRule] = {}
    if rules:
        symptoms = {key: symptom_rule(rules.symptoms[key]) for key in sorted(rules.symptoms)}
        causes = {key: cause_rule(rules.causes[key], taxonomy[key]) for key in sorted(rules.causes)}
        origins |= {f"symptom/{key}": source.file for key, source in rules.symptoms.items()}
        origins |= {f"rule/{key}": source.file for key, source in rules.causes.items()}
        origins |= {f"disabled/{key}": file for key, file in rules.disabled.items()}
    return Catalogue(
        hash=hash_,
        entries=entries,
        taxonomy=taxonomy,
        signals={key: signal(entry) for key, entry in entries.get("signals", {}).items()},
        models=tuple(gpu_model(entry) for entry in entries.get("gpu_models", {}).values()),
        symptoms=symptoms,
        causes=causes,
        origins=origins,
        thinned=dict(rules.thinned) if rules else {},
    )


def seconds(text: str) -> float:
    """Return the seconds of a validated duration such as ``90s``, ``5m`` or ``1h``."""
    return float(text[:-1]) * _SECONDS[text[-1]]


def cause_info(entry: Entry) -> CauseInfo:
    """Build one taxonomy entry."""
    return CauseInfo(
        entry["id"], Class(entry["class"]), entry["scope"], entry["title"], entry["is"]
    )


def signal(entry: Entry) -> Signal:
    """Build one signal."""
    low, high = entry.get("range") or (None, None)
    return Signal(
        id=entry["id"],
        title=entry["title"],
        unit=entry["unit"],
        kind=entry["kind"],
        scope=entry["scope"],
        spellings=tuple(spelling(s) for s in entry.get("spellings") or ()),
        low=None if low is None else float(low),
        high=None if high is None else float(high),
        core=entry.get("core", False),
        bits=entry.get("bits"),
        field=entry.get("field"),
        default_exported=entry.get("default_exported", False),
        export=entry.get("export") or "",
        source=tuple(entry["source"]),
        status=entry["status"],
        combine=entry.get("combine", "max"),
    )


def spelling(entry: Entry) -> Spelling:
    """Build one spelling of a signal."""
    return Spelling(
        name=entry["name"],
        unit=entry["unit"],
        scale=float(entry.get("scale", 1.0)),
        match=entry.get("match") or {},
        exporter=entry.get("exporter", "dcgm-exporter"),
        vendor=entry.get("vendor", "nvidia"),
        since=entry.get("since"),
        counts=entry.get("counts"),
    )


def gpu_model(entry: Entry) -> GpuModel:
    """Build one GPU model."""
    return GpuModel(
        id=entry["id"],
        title=entry["title"],
        match=tuple(entry["match"]),
        pattern=entry["pattern"],
        vendor=entry["vendor"],
        architecture=entry["architecture"],
        attrs={
            **{name: float(value) for name, value in entry["attrs"].items()},
            "amd": float(entry["vendor"] == "amd"),
        },
        source=tuple(entry["source"]),
    )


def symptom_rule(source: RuleSource) -> SymptomRule:
    """Build one symptom."""
    data = source.data
    return SymptomRule(
        id=data["id"],
        title=data["title"],
        version=data["version"],
        status=data["status"],
        scope=data["scope"],
        when=data["when"],
        when_place=source.place("when"),
        threshold=data["threshold"],
        basis=_texts(data, "basis"),
        hold_s=seconds(data["for"]) if data.get("for") else 0.0,
        references=_texts(data, "references"),
        false_positives=_texts(data, "false_positives"),
        tests=_tests(source),
        place=source.place(),
    )


def cause_rule(source: RuleSource, info: CauseInfo) -> CauseRule:
    """Build one cause; class and scope come from the taxonomy."""
    data = source.data
    return CauseRule(
        id=data["id"],
        title=data["title"],
        version=data["version"],
        status=data["status"],
        severity=Severity(data["severity"]),
        patterns=tuple(_pattern(entry) for entry in data["patterns"]),
        says=data["says"],
        class_=info.class_,
        scope=info.scope,
        explains=_texts(data, "explains"),
        effects=_texts(data, "effects"),
        against=_texts(data, "against"),
        next=tuple(
            NextStep(
                s["do"], s.get("command"), s.get("risk", "none"), s.get("capture"), s.get("vendor")
            )
            for s in data.get("next", ())
        ),
        alternatives=tuple(
            AlternativeRule(a["cause"], a["told_apart_by"], a.get("command"))
            for a in data.get("alternatives", ())
        ),
        references=_texts(data, "references"),
        false_positives=_texts(data, "false_positives"),
        tests=_tests(source),
        place=source.place(),
    )


def _pattern(entry: Entry) -> Pattern:
    return Pattern(
        all=_texts(entry, "all"),
        any=_texts(entry, "any"),
        none=_texts(entry, "none"),
        unless=_texts(entry, "unless"),
        confidence=Confidence(entry["confidence"]),
        note=entry.get("note", False),
    )


def _texts(data: Entry, key: str) -> tuple[str, ...]:
    return tuple(data.get(key, ()))


def _tests(source: RuleSource) -> tuple[RuleTest, ...]:
    return tuple(
        RuleTest(
            name=test["name"],
            given=test["given"],
            expect=_word(test["expect"]),
            model=test.get("model"),
            siblings=test.get("siblings"),
            rail=test.get("rail"),
            confidence=test.get("confidence"),
            place=source.place("tests", number),
        )
        for number, test in enumerate(source.data.get("tests", ()))
    )


def _word(expect: Any) -> str:
    """Return what a test expects as a word: YAML's true and false become text."""
    return str(expect).lower() if isinstance(expect, bool) else expect
