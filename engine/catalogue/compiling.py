"""From YAML files to validated plain data. Needs PyYAML and pydantic, so it is imported late.

`read_knowledge` and `read_rules` parse and check each file alone; what one entry says about
another is checked in `engine.catalogue.references`. All problems are collected, none is raised.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import BaseModel

from engine.catalogue.files import SourceFile
from engine.catalogue.lookupschema import (
    AlertEntry,
    ConcernEntry,
    LookupEntry,
    ThresholdEntry,
    VocabularyEntry,
    WithdrawnEntry,
)
from engine.catalogue.messageschema import MessageEntry, VerbsStatusEntry
from engine.catalogue.nearest import did_you_mean
from engine.catalogue.parts import Knowledge, Rules, RuleSource
from engine.catalogue.profileschema import (
    KernelReadingEntry,
    KernelVerdictEntry,
    StackFrameEntry,
)
from engine.catalogue.ruleschema import CauseFile, Disabling, SymptomFile
from engine.catalogue.schema import (
    CudaErrorEntry,
    Entry,
    GpuModelEntry,
    ServiceReadingEntry,
    SignalEntry,
    TaxonomyEntry,
)
from engine.catalogue.validate import validate
from engine.catalogue.vendorschema import (
    DcgmFieldEntry,
    SxidEntry,
    ThrottleReason,
    XidEntry,
)
from engine.catalogue.yamlfile import Document, Steps, describe, parse_yaml
from engine.errors import CatalogueError, Problem

# A concern that is not named here is one that people look things up in: `LookupEntry`.
CONCERNS: Mapping[str, type[BaseModel]] = {
    "alerts": AlertEntry,
    "concerns": ConcernEntry,
    "thresholds": ThresholdEntry,
    "vocabulary": VocabularyEntry,
    "withdrawn": WithdrawnEntry,
    "taxonomy": TaxonomyEntry,
    "signals": SignalEntry,
    "service_readings": ServiceReadingEntry,
    "cuda_errors": CudaErrorEntry,
    "gpu_models": GpuModelEntry,
    "throttle_reasons": ThrottleReason,
    "dcgm_fields": DcgmFieldEntry,
    "xid": XidEntry,
    "sxid": SxidEntry,
    "kernel_readings": KernelReadingEntry,
    "stack_frames": StackFrameEntry,
    "kernel_verdicts": KernelVerdictEntry,
    "nccl_messages": MessageEntry,
    "nccl_overrides": MessageEntry,
    "torch_messages": MessageEntry,
    "verbs_status": VerbsStatusEntry,
    # Small tables whose keys are their own.
    **dict.fromkeys(
        (
            "dcgm_errors",
            "nvlink4_registers",
            "nvlink5",
            "nvlink5_fields",
            "nvlink5_reasons",
            "port_counters",
            "xid154_actions",
            "xid_buckets",
            "xid_follow_on",
            "xid_priors",
        ),
        Entry,
    ),
}
RULE_MODELS: Mapping[str, type[BaseModel]] = {"symptoms": SymptomFile, "causes": CauseFile}


@dataclass(frozen=True, slots=True)
class Located:
    """A knowledge entry and where it stands in its document."""

    concern: str
    entry: dict[str, Any]
    document: Document
    path: Steps

    @property
    def key(self) -> str:
        """Concern and id: ``xid/79``."""
        return f"{self.concern}/{self.entry['id']}"

    @property
    def id_path(self) -> Steps:
        """Where the id stands in the document."""
        return (*self.path, "id")


@dataclass(frozen=True, slots=True)
class RuleFile:
    """A rule file that passed its model. ``kind`` is ``symptoms`` or ``causes``."""

    kind: str
    document: Document

    @property
    def id(self) -> str:
        """The rule's id."""
        return str(self.document.data["id"])

    @property
    def key(self) -> str:
        """Kind and id: ``causes/power_brake``."""
        return f"{self.kind}/{self.id}"

    @property
    def id_path(self) -> Steps:
        """Where the id stands in the document."""
        return ("id",)

    @property
    def disables(self) -> bool:
        """Whether the file only switches a rule off."""
        return "disabled" in self.document.data

    def source(self) -> RuleSource:
        """Return the rule as plain data with its places."""
        marks = {"/".join(map(str, path)): mark for path, mark in self.document.values.items()}
        return RuleSource(self.document.file, self.document.data, marks)


def parse_all(
    files: Iterable[SourceFile], problems: list[Problem]
) -> Iterator[tuple[str, Document]]:
    """Yield (path below the part, document) for each file that parses; add problems of others."""
    for file in files:
        try:
            yield file.inner, parse_yaml(file.data, file.shown)
        except CatalogueError as error:
            problems += error.problems


def read_knowledge(
    files: Iterable[SourceFile], problems: list[Problem], *, concerns: Iterable[str] = ()
) -> list[Located]:
    """Parse knowledge files and check every entry by itself.

    Args:
        files: the files.
        problems: what is wrong is added here.
        concerns: for an overlay the concerns that there are; any other is then a problem.
    """
    known = frozenset(concerns)
    found: list[Located] = []
    for _, document in parse_all(files, problems):
        for concern, entries in document.data.items():
            if known and concern not in known:
                hint = did_you_mean(concern, known, otherwise=f"known: {', '.join(sorted(known))}")
                message = f"unknown concern '{concern}'"
                problems.append(document.problem((concern,), message, hint, key=True))
            elif not isinstance(entries, list):
                message = f"'{concern}' must be a list of entries, found {describe(entries)}"
                problems.append(document.problem((concern,), message, "start each entry with '- '"))
            else:
                found += _entries(document, concern, entries, problems)
    return _once(found, problems)


def _entries(
    document: Document, concern: str, entries: list[Any], problems: list[Problem]
) -> Iterator[Located]:
    model = CONCERNS.get(concern, LookupEntry)
    for position, entry in enumerate(entries):
        path = (concern, position)
        wrong = validate(model, entry, document, path)
        problems += wrong
        if not wrong:
            yield Located(concern, entry, document, path)


def read_rules(files: Iterable[SourceFile], problems: list[Problem]) -> list[RuleFile]:
    """Parse rule files and check each by itself; what is wrong is added to ``problems``."""
    found: list[RuleFile] = []
    for inner, document in parse_all(files, problems):
        kind = inner.split("/")[0]
        if kind not in RULE_MODELS or "/" not in inner:
            message = "a rule file must lie under symptoms/ or causes/"
            problems.append(document.problem((), message, "move it there"))
            continue
        model = Disabling if "disabled" in document.data else RULE_MODELS[kind]
        wrong = validate(model, document.data, document, ())
        problems += wrong
        if not wrong:
            found.append(RuleFile(kind, document))
    return _once(found, problems)


U = TypeVar("U", Located, RuleFile)


def _once(found: Iterable[U], problems: list[Problem]) -> list[U]:
    """Return what is defined first under each name; add a problem for each further one."""
    first: dict[str, str] = {}
    kept: list[U] = []
    for one in found:
        name, path = one.key, one.id_path
        if name in first:
            message = f"'{name}' is already defined at {first[name]}"
            hint = "remove one, or give it another id"
            problems.append(one.document.problem(path, message, hint))
        else:
            kept.append(one)
            first[name] = str(one.document.place(path))
    return kept


def without_wrong(located: Located, wrong: Iterable[tuple[Located, Problem]]) -> Located | None:
    """Return an entry without the links that lead nowhere; None if more than links is wrong."""
    mine = [problem for other, problem in wrong if other is located]
    if not mine:
        return located
    links = located.entry.get("see") or []
    dead = {
        link
        for position, link in enumerate(links)
        if str(located.document.place((*located.path, "see", position)))
        in {f"{p.file}:{p.line}:{p.column}" for p in mine}
    }
    if len(dead) < len(mine):
        return None
    return replace(located, entry=located.entry | {"see": [x for x in links if x not in dead]})


def as_knowledge(found: Iterable[Located], base: Knowledge | None = None) -> Knowledge:
    """Return entries as plain data, laid over those of ``base`` (which is left as it is)."""
    merged = Knowledge()
    if base:
        merged.entries = {concern: dict(entries) for concern, entries in base.entries.items()}
        merged.places = {concern: dict(places) for concern, places in base.places.items()}
    for located in found:
        merged.put(located.concern, located.entry, located.document.place(located.path))
    return merged


def as_rules(found: Iterable[RuleFile], base: Rules | None = None) -> Rules:
    """Return rules as plain data, laid over those of ``base`` (which is left as it is).

    A file that disables a rule takes it out; what others say of it stays until
    `engine.catalogue.overlay.prune`.
    """
    merged = Rules()
    if base:
        merged = Rules(
            dict(base.symptoms), dict(base.causes), dict(base.disabled), dict(base.thinned)
        )
    for rule in found:
        rules = merged.symptoms if rule.kind == "symptoms" else merged.causes
        name = f"{'symptom' if rule.kind == 'symptoms' else 'rule'}/{rule.id}"
        if rule.disables:
            rules.pop(rule.id, None)
            merged.disabled[name] = rule.document.file
        else:
            rules[rule.id] = rule.source()
            merged.disabled.pop(name, None)
            if rule.kind == "causes":
                merged.thinned.pop(rule.id, None)
    return merged
