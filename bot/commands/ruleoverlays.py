"""What the overlays of a site change about the rules: replaced, added, off, and by which file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from bot.answer import Answer, Block, Fields, Heading, Text, bullets, code, line, strong
from engine.catalogue.types import is_packaged
from engine.condition.units import written

if TYPE_CHECKING:
    from engine.catalogue.types import Catalogue, CauseRule

_KINDS = {"symptom": "symptom", "rule": "cause"}


def disabled_rows(catalogue: Catalogue) -> list[tuple[str, ...]]:
    """Return a row of `rules list` for every rule that an overlay switches off."""
    rows: list[tuple[str, ...]] = []
    for key in catalogue.disabled:
        kind, _, name = key.partition("/")
        info = catalogue.taxonomy.get(name) if kind == "rule" else None
        class_, scope, title = (str(info.class_), info.scope, info.title) if info else ("", "", "")
        rows.append((_KINDS[kind], name, "", "disabled", class_, scope, "", title))
    return rows


def file_of(kind: str, name: str, catalogue: Catalogue) -> str:
    """Return the file that decides about a rule: the one that won, or that switches it off."""
    key = f"{'rule' if kind == 'cause' else 'symptom'}/{name}"
    return catalogue.origins.get(key) or catalogue.disabled.get(key, "")


def changes(catalogue: Catalogue) -> Iterator[Block]:
    """Yield what overlays change: one point for every rule and every threshold, with its file."""
    points = []
    for key, file in catalogue.of_overlays.items():
        kind, _, name = key.partition("/")
        if kind in _KINDS:
            points.append(line(f"{_KINDS[kind]} ", code(name), f" comes from {file}"))
        elif kind == "thresholds":
            limit = catalogue.limits[name]
            value = written(limit.value, limit.unit)
            points.append(line(code(f"limit.{name}"), f" is {value} in {file}"))
    for key, file in catalogue.disabled.items():
        kind, _, name = key.partition("/")
        points.append(line(f"{_KINDS[kind]} ", code(name), f" is switched off by {file}"))
    for name, lost in sorted(catalogue.thinned.items()):
        points.append(line("cause ", code(name), f" goes without {', '.join(lost)}"))
    if points:
        yield Heading(line("What overlays change"))
        yield bullets(points)


def limits_of_overlays(catalogue: Catalogue) -> list[dict[str, Any]]:
    """Return the thresholds that overlays set, as JSON-able values."""
    return [
        {"id": limit.id, "value": limit.value, "unit": limit.unit, "file": limit.file}
        for _, limit in sorted(catalogue.limits.items())
        if limit.file and not is_packaged(limit.file)
    ]


def show_disabled(name: str, catalogue: Catalogue) -> Answer | None:
    """Return what is known of a rule that is switched off; None for any other name."""
    found = {key: f for key, f in catalogue.disabled.items() if key.partition("/")[2] == name}
    if not found:
        return None
    key, file = next(iter(found.items()))
    kind = _KINDS[key.partition("/")[0]]
    info = catalogue.taxonomy.get(name) if kind == "cause" else None
    users = [cause for cause, lost in sorted(catalogue.thinned.items()) if name in lost]
    return Answer(
        title=line(f"The {kind} ", strong(name), f" is switched off by {file}"),
        blocks=(
            *((Text(line(info.is_)),) if info else ()),
            *((Fields((("causes that go without it", line(", ".join(users))),)),) if users else ()),
            Text(line("Without that file, or with another overlay after it, it is on again.")),
        ),
        data={
            "schema": "gpuwhy/rules-show/1",
            "kind": kind,
            "id": name,
            "status": "disabled",
            "file": file,
        },
    )


def thinned_block(rule: CauseRule, catalogue: Catalogue) -> Iterator[Block]:
    """Yield what a cause cannot look at because it is switched off."""
    lost = catalogue.thinned.get(rule.id, ())
    if lost:
        yield Heading(line("Goes without, as an overlay switches it off"), 2)
        yield bullets(
            line(code(ref), f" ({file_of(*_named(ref), catalogue) or 'in an earlier overlay'})")
            for ref in lost
        )


def _named(ref: str) -> tuple[str, str]:
    """Return kind and id of what a pattern refers to."""
    if ref.startswith("cause/"):
        return "cause", ref.removeprefix("cause/")
    return "symptom", ref
