"""What entries and rules say about each other: do all names exist, is nothing circular."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from graphlib import CycleError, TopologicalSorter

from engine.catalogue.compiling import Located, RuleFile
from engine.catalogue.nearest import did_you_mean
from engine.catalogue.parts import Knowledge, Rules, RuleSource
from engine.catalogue.yamlfile import Steps
from engine.errors import Problem

# Keys of a concern that hold an id of another; checked where that other is there at all.
_SINGLE_REFERENCES = (
    ("xid", "taxonomy", "taxonomy"),
    ("cuda_errors", "taxonomy", "taxonomy"),
    ("xid", "resolution", "xid_buckets"),
    ("sxid", "taxonomy", "taxonomy"),
    ("sxid", "resolution", "xid_buckets"),
    ("signals", "field", "dcgm_fields"),
    ("kernel_verdicts", "cause", "taxonomy"),
    ("stack_frames", "cause", "taxonomy"),
    ("nccl_messages", "cause", "taxonomy"),
    ("nccl_overrides", "cause", "taxonomy"),
    ("torch_messages", "cause", "taxonomy"),
    ("verbs_status", "cause", "taxonomy"),
)
_PATTERN_KEYS = ("all", "any", "none", "unless")


def check_knowledge(
    found: Iterable[Located], knowledge: Knowledge
) -> Iterator[tuple[Located, Problem]]:
    """Yield what freshly read entries name that does not exist in all of the knowledge."""
    for located in found:
        for position, link in enumerate(located.entry.get("see") or ()):
            concern, _, key = link.partition("/")
            if key not in knowledge.entries.get(concern, {}):
                yield (
                    located,
                    located.document.problem(
                        (*located.path, "see", position),
                        f"link '{link}' leads nowhere",
                        _link_hint(concern, key, knowledge),
                    ),
                )
        for concern, key, target in _SINGLE_REFERENCES:
            if concern == located.concern:
                for problem in _single_reference(located, key, target, knowledge):
                    yield located, problem
        bits = located.entry.get("bits")
        if located.concern == "signals" and bits and bits not in knowledge.entries:
            hint = did_you_mean(bits, knowledge.entries)
            path = (*located.path, "bits")
            message = f"no knowledge table '{bits}'"
            yield located, located.document.problem(path, message, hint)


def check_replaced(found: Iterable[Located], base: Knowledge) -> Iterator[tuple[Located, Problem]]:
    """Yield limits of an overlay whose unit is not that of the limit they replace."""
    known = base.entries.get("thresholds", {})
    for located in found:
        old = known.get(str(located.entry["id"])) if located.concern == "thresholds" else None
        unit = located.entry.get("unit")
        if old and unit != old["unit"]:
            message = f"limit '{old['id']}' is in {old['unit']}, not in {unit}"
            hint = f"give the value in {old['unit']}: rules compare with it as it is"
            yield located, located.document.problem((*located.path, "unit"), message, hint)


def _single_reference(
    located: Located, key: str, target: str, knowledge: Knowledge
) -> Iterator[Problem]:
    value = located.entry.get(key)
    known = knowledge.entries.get(target)
    if value is not None and known is not None and str(value) not in known:
        hint = did_you_mean(str(value), known)
        path = (*located.path, key)
        yield located.document.problem(path, f"'{key}' names unknown {target} id '{value}'", hint)


def _link_hint(concern: str, key: str, knowledge: Knowledge) -> str:
    if concern not in knowledge.entries:
        return did_you_mean(concern, knowledge.entries, otherwise="no such concern")
    known = knowledge.entries[concern]
    return did_you_mean(key, known, otherwise=f"no such id in {concern}")


def check_rules(rules: Rules, knowledge: Knowledge) -> Iterator[Problem]:
    """Yield what rules name that does not exist, and causes that depend on themselves."""
    signals = knowledge.entries.get("signals", {})
    taxonomy = knowledge.entries.get("taxonomy", {})
    symptoms = rules.symptoms.keys() | _disabled(rules, "symptom")
    causes = rules.causes.keys() | _disabled(rules, "rule")
    for source in (*rules.symptoms.values(), *rules.causes.values()):
        for path, name in _signals_in_tests(source):
            if name not in signals:
                yield _unknown(source, "signal", name, signals, path)
    for source in rules.symptoms.values():
        yield from _basis(source, knowledge)
    for source in rules.causes.values():
        name = source.data["id"]
        if name not in taxonomy:
            new = "add it under taxonomy: in DIR/knowledge/*.yaml"
            near = did_you_mean(name, taxonomy)
            hint = f"{near} else {new}" if near else new
            remark = " in the taxonomy"
            yield _unknown(source, "cause", name, taxonomy, ("id",), remark=remark, hint=hint)
        for path, name in _references(source):
            yield from _reference(source, symptoms, causes, name, path)
        for key, known, what in (
            ("explains", symptoms, "symptom"),
            ("against", symptoms, "symptom"),
            ("effects", taxonomy, "cause"),
        ):
            for position, name in enumerate(source.data.get(key, ())):
                if name not in known:
                    yield _unknown(source, what, name, known, (key, position))
        for position, other in enumerate(source.data.get("alternatives", ())):
            if other["cause"] not in taxonomy:
                path = ("alternatives", position, "cause")
                yield _unknown(source, "cause", other["cause"], taxonomy, path)
    yield from _circles(rules)


def _basis(source: RuleSource, knowledge: Knowledge) -> Iterator[Problem]:
    """Yield links of a symptom to knowledge that lead nowhere."""
    for position, link in enumerate(source.data.get("basis", ())):
        concern, _, key = link.partition("/")
        if key not in knowledge.entries.get(concern, {}):
            place = source.place("basis", position)
            message, hint = f"basis '{link}' leads nowhere", _link_hint(concern, key, knowledge)
            yield Problem(place.file, place.line, place.column, message, hint)


def _signals_in_tests(source: RuleSource) -> Iterator[tuple[Steps, str]]:
    """Yield every signal that the tests of a rule give readings for, with its path."""
    for number, test in enumerate(source.data.get("tests", ())):
        for name in test["given"]:
            yield ("tests", number, "given", name), name
        for group in ("siblings", "rail"):
            others = test.get(group) or {}
            for key in ("given", "odd"):
                for name in others.get(key) or ():
                    yield ("tests", number, group, key, name), name


def _references(source: RuleSource) -> Iterator[tuple[Steps, str]]:
    """Yield every symptom or ``cause/ID`` in the patterns of a cause, with its path."""
    for number, pattern in enumerate(source.data["patterns"]):
        for key in _PATTERN_KEYS:
            for position, name in enumerate(pattern.get(key, ())):
                yield ("patterns", number, key, position), name


def _disabled(rules: Rules, kind: str) -> set[str]:
    """Return the ids that an overlay switched off; naming them is no mistake."""
    parts = (name.split("/", 1) for name in rules.disabled)
    return {name for found, name in parts if found == kind}


def _reference(
    source: RuleSource,
    symptoms: AbstractSet[str],
    causes: AbstractSet[str],
    name: str,
    path: Steps,
) -> Iterator[Problem]:
    if name.startswith("cause/"):
        if name.removeprefix("cause/") not in causes:
            known = [f"cause/{other}" for other in causes]
            yield _unknown(source, "cause", name, known, path, remark=": no rule has this id")
    elif name not in symptoms:
        hint = f"write cause/{name} to refer to the cause" if name in causes else ""
        yield _unknown(source, "symptom", name, symptoms, path, hint=hint)


def _unknown(
    source: RuleSource,
    what: str,
    name: str,
    known: Iterable[str],
    path: Steps,
    *,
    remark: str = "",
    hint: str = "",
) -> Problem:
    place = source.place(*path)
    fix = hint or did_you_mean(name, known, otherwise=f"there is no such {what}")
    message = f"unknown {what} '{name}'{remark}"
    return Problem(place.file, place.line, place.column, message, fix)


def check_disabling(found: Iterable[RuleFile], base: Rules | None) -> Iterator[Problem]:
    """Yield files that switch off a rule which does not exist."""
    for rule in found:
        known = (base.symptoms if rule.kind == "symptoms" else base.causes) if base else {}
        if rule.disables and rule.id not in known:
            message = f"there is no rule '{rule.id}' in {rule.kind} to disable"
            yield rule.document.problem(("id",), message, did_you_mean(rule.id, known))


def _circles(rules: Rules) -> Iterator[Problem]:
    """Yield at most one circle of each sort: causes that need each other, effects of effects."""
    needs = {
        name: [r.removeprefix("cause/") for _, r in _references(source) if r.startswith("cause/")]
        for name, source in sorted(rules.causes.items())
    }
    effects = {name: rules.causes[name].data.get("effects", []) for name in sorted(rules.causes)}
    for graph, key, what in ((needs, "patterns", "need"), (effects, "effects", "are effects of")):
        circle = _circle(graph)
        if circle:
            place = rules.causes[circle[0]].place(key)
            message = f"causes {what} each other in a circle: {' -> '.join(circle)}"
            yield Problem(
                place.file, place.line, place.column, message, "take one of these references out"
            )


def _circle(graph: dict[str, list[str]]) -> list[str]:
    """Return one circle that starts and ends with its alphabetically first member, or nothing."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        ring: list[str] = list(reversed(error.args[1][1:]))
        start = ring.index(min(ring))
        return [*ring[start:], *ring[:start], ring[start]]
    return []
