"""The vendor's tables as cards: fields, Xids, SXids, bits, GPU models, signals and causes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from engine.catalogue.types import Catalogue, CauseRule
from engine.lookup.card import Card, CommandLine, Metric, lookup_card
from engine.lookup.placeholders import PLACEHOLDERS

Entry = Mapping[str, Any]

# ``{signal}`` and ``{symptom.value}`` in the commands of rules.
_VERDICT_VALUE = re.compile(r"\{([a-z][a-z0-9_]*)(?:\.[a-z]+)?\}")

# Tables that say something only together with another entry, or are no answer to a question.
_NOT_ASKED = frozenset(
    (
        "concerns",
        "cuda_errors",
        "dcgm_errors",
        "kernel_readings",
        "kernel_verdicts",
        "stack_frames",
        "nvlink4_registers",
        "nvlink5",
        "nvlink5_fields",
        "nvlink5_reasons",
        "service_readings",
        "vocabulary",
        "withdrawn",
        "xid_follow_on",
        "xid_priors",
    )
)


def cards(catalogue: Catalogue) -> Iterator[Card]:
    """Yield a card for every entry that can answer a question, in the order of the files."""
    for concern, entries in catalogue.entries.items():
        if concern in _NOT_ASKED:
            continue
        make = _TABLES.get(concern)
        for entry in entries.values():
            if make:
                yield replace(make(entry, catalogue), asked=tuple(entry.get("asked") or ()))
            elif "text" in entry:
                yield lookup_card(concern, entry)


def card(key: str, catalogue: Catalogue) -> Card | None:
    """Return the card of an entry (``concern/id``), or None if there is none."""
    concern, _, name = key.partition("/")
    entry = catalogue.entries.get(concern, {}).get(name)
    if entry is None:
        return None
    make = _TABLES.get(concern)
    if make:
        return make(entry, catalogue)
    if "kind" in entry and "text" in entry:
        return lookup_card(concern, entry)
    title = str(entry.get("title", name))
    said = entry.get("text") or entry.get("meaning") or entry.get("why") or entry.get("words")
    text = ", ".join(said) if isinstance(said, list) else str(said or title)
    return Card(key, title, text, raw=entry)


def _dcgm_field(entry: Entry, catalogue: Catalogue) -> Card:
    number = entry["id"]
    exported = "exported by default" if entry.get("default_exported") else "not exported by default"
    meaning = entry.get("meaning") or entry["title"]
    unit = f" Unit: {entry['unit']}." if entry.get("unit") else ""
    since = f" Since DCGM {entry['since']}." if entry.get("since") else ""
    del catalogue
    return Card(
        key=f"dcgm_fields/{number}",
        title=f"DCGM field {number}, {entry['name']}: {entry['title']}",
        text=f"{meaning}{unit}{since} A stock dcgm-exporter: {exported}.",
        kind="metric",
        vendor="nvidia",
        names=(*entry["names"], f"field {number}"),
        tools=("dcgmi dmon", "dcgm-exporter"),
        commands=(
            CommandLine(
                ("dcgmi", "dmon", "-e", str(number), "-i", "{gpu}", "-c", "10"),
                "reads the field ten times, once a second",
            ),
        )
        if entry["kind"] not in {"binary", "text"}
        else (),
        metrics=(Metric(entry["name"], entry.get("unit", ""), field=number),),
        raw=entry,
    )


def _xid(entry: Entry, catalogue: Catalogue) -> Card:
    del catalogue
    number = entry["id"]
    return Card(
        key=f"xid/{number}",
        title=f"Xid {number}: {entry['title']}",
        text=_sentences(entry.get("meaning"), f"Severity {entry['severity']}", entry.get("action")),
        vendor="nvidia",
        names=tuple(filter(None, (f"xid {number}", f"Xid{number}", entry.get("symbol")))),
        tools=("dmesg",),
        commands=(
            CommandLine(
                ("dmesg", "-T"),
                "lists the Xids that the kernel log still holds",
                show="dmesg -T | grep -i 'NVRM: Xid'",
                privilege="root where kernel.dmesg_restrict is 1",
            ),
        ),
        raw=entry,
    )


def _sxid(entry: Entry, catalogue: Catalogue) -> Card:
    del catalogue
    number = entry["id"]
    return Card(
        key=f"sxid/{number}",
        title=f"SXid {number}: {entry['title']}",
        text=_sentences(entry.get("meaning"), entry.get("action")),
        vendor="nvidia",
        names=tuple(filter(None, (f"sxid {number}", f"SXid{number}", entry.get("symbol")))),
        tools=("dmesg",),
        raw=entry,
    )


def _throttle(entry: Entry, catalogue: Catalogue) -> Card:
    del catalogue
    return Card(
        key=f"throttle_reasons/{entry['id']}",
        title=f"throttle reason {entry['hex']}: {entry['title']}",
        text=_sentences(entry["meaning"], entry["action"]),
        vendor="nvidia",
        names=(
            f"throttle {entry['hex']}",
            entry["hex"],
            str(entry["id"]),
            *entry["nvml"],
            *entry["dcgm"],
            *entry.get("nvidia_smi", ()),
        ),
        tools=("nvidia-smi",),
        commands=(
            CommandLine(
                ("nvidia-smi", "-i", "{gpu}", "-q", "-d", "PERFORMANCE"),
                "shows which reasons are active",
            ),
        ),
        metrics=(Metric("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "bitmask", field=112),),
        raw=entry,
    )


_ATTRIBUTES = {
    "w": "W",
    "mhz": "MHz",
    "c": "°C",
    "tflops": "TFLOP/s",
    "gbps": "GB/s",
    "gb": "GB",
    "gib": "GiB",
    "byte": "FLOP/byte",
    "direction": "GB/s per direction",
}


def _model(entry: Entry, catalogue: Catalogue) -> Card:
    del catalogue
    said = ", ".join(attribute(name, value) for name, value in entry["attrs"].items())
    return Card(
        key=f"gpu_models/{entry['id']}",
        title=f"{entry['title']}: limits and peaks",
        text=_sentences(f"{entry['architecture']}: {said}", entry.get("note")),
        vendor=entry["vendor"],
        names=(entry["id"], *entry["match"]),
        raw=entry,
    )


def attribute(name: str, value: float) -> str:
    """Return an attribute of a GPU model as people read it: ``tdp 700 W``."""
    words = name.split("_")
    if name == "ridge_flop_per_byte":
        return f"ridge point {value:g} FLOP/byte"
    if name.endswith("_gbps_per_direction"):
        return f"{' '.join(words[:-3])} {value:g} GB/s per direction"
    unit = _ATTRIBUTES.get(words[-1], "")
    head = " ".join(words[:-1] if unit else words)
    return f"{head} {value:g} {unit}".rstrip()


def _signal(entry: Entry, catalogue: Catalogue) -> Card:
    del catalogue
    names = [spelling["name"] for spelling in entry.get("spellings", ())]
    said = f"Read from {', '.join(names)}" if names else ""
    return Card(
        key=f"signals/{entry['id']}",
        title=entry["title"],
        text=_sentences(
            entry.get("meaning") or f"{entry['title']} in {entry['unit']}",
            said,
            entry.get("export"),
        ),
        kind="metric",
        names=(entry["id"], *names),
        metrics=tuple(Metric(s["name"], s["unit"]) for s in entry.get("spellings", ())[:2]),
        raw=entry,
    )


def _cause(entry: Entry, catalogue: Catalogue) -> Card:
    rule = catalogue.causes.get(entry["id"])
    return Card(
        key=f"taxonomy/{entry['id']}",
        title=entry["title"],
        text=_sentences(entry["is"], f"Class {entry['class']}"),
        names=(entry["id"],),
        commands=_rule_commands(rule) if rule else (),
        tools=tuple(dict.fromkeys(c.argv[0] for c in _rule_commands(rule))) if rule else (),
        raw=entry,
    )


def _rule_commands(rule: CauseRule) -> tuple[CommandLine, ...]:
    """Return the next steps of a rule; what only a verdict could fill is an upper-case word."""

    def worded(found: re.Match[str]) -> str:
        return found[0] if found[1] in PLACEHOLDERS else found[1].upper()

    return tuple(
        CommandLine(
            (step.command.split()[0],),
            step.do,
            show=_VERDICT_VALUE.sub(worded, step.command),
            risk=step.risk,
        )
        for step in rule.next
        if step.command
    )


def _sentences(*parts: str | None) -> str:
    said = (" ".join(part.split()) for part in parts if part)
    return " ".join(part if part.endswith((".", "!", "?")) else f"{part}." for part in said)


_TABLES: Mapping[str, Callable[[Entry, Catalogue], Card]] = {
    "dcgm_fields": _dcgm_field,
    "gpu_models": _model,
    "signals": _signal,
    "sxid": _sxid,
    "taxonomy": _cause,
    "throttle_reasons": _throttle,
    "xid": _xid,
}
