"""Metric families of exporter text: what ``# TYPE`` declares against what has samples."""

from __future__ import annotations

import re
from collections.abc import Iterator

from engine.model import Finding, Severity
from engine.readers.series import Collected
from engine.readers.value_oddities import listed

_TYPE = re.compile(r"# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (\w{1,20})")
_PARTS = ("", "_total", "_bucket", "_sum", "_count", "_created", "_info")


class Families:
    """The declarations of a text, bounded in number."""

    LIMIT = 20_000

    def __init__(self) -> None:
        self._types: dict[str, tuple[str, int]] = {}
        self._clashes: dict[str, tuple[str, str, int]] = {}

    @property
    def declared(self) -> bool:
        """Whether any family was declared."""
        return bool(self._types)

    def feed(self, number: int, text: str) -> None:
        """Take one comment line."""
        found = _TYPE.match(text)
        if found is None:
            return
        name, kind = found.groups()
        before = self._types.get(name)
        if before is None:
            if len(self._types) < self.LIMIT:
                self._types[name] = (kind, number)
        elif before[0] != kind:
            self._clashes.setdefault(name, (before[0], kind, number))

    def oddities(self, collected: Collected) -> Iterator[Finding]:
        """Yield families without samples, clashing declarations, and series that stand twice."""
        names = {s.name for s in collected.series.values()} | collected.valueless.keys()
        bare = [n for n in self._types if not any(n + part in names for part in _PARTS)]
        if bare:
            yield self._declared(bare, alone=not names)
        if self._clashes:
            yield self._clash()
        yield from _duplicates(collected)

    def _declared(self, bare: list[str], *, alone: bool) -> Finding:
        says = f"Declared without samples: {listed(bare)}."
        says += (
            " The text holds no sample at all."
            if alone
            else " Nothing was counted yet, or this could not be read: absent is not zero."
        )
        return Finding(
            kind="metrics",
            id="declared_only",
            severity=Severity.LOW if alone else Severity.INFO,
            says=says,
            action=(
                "Look into the exporter's log for why it could not read them; paste the text "
                "without a filter that drops samples."
                if alone
                else "If they should be there: look into the exporter's log."
            ),
            entity=None,
            line=self._types[bare[0]][1],
            cause="no_data" if alone else None,
            data={"metrics": bare[:64], "families_without_samples": len(bare)},
        )

    def _clash(self) -> Finding:
        name, (old, new, line) = next(iter(self._clashes.items()))
        return Finding(
            kind="metrics",
            id="type_clash",
            severity=Severity.INFO,
            says=(
                f"{listed(self._clashes)}: declared with two types ({name}: {old}, then {new}), so "
                "two sources were joined, or two versions of an exporter."
            ),
            action="Tell the sources apart before taking rates.",
            entity=None,
            line=line,
            cause=None,
            data={"metrics": list(self._clashes)[:64]},
        )


def _duplicates(collected: Collected) -> Iterator[Finding]:
    """Series that stand more than once where the rest stands once: not a second scrape."""
    if collected.scrapes != 1:
        return
    twice = [s for s in collected.series.values() if s.count > 1 and s.start == s.end]
    if not twice:
        return
    differ = sum(1 for s in twice if s.first != s.last or s.increase)
    yield Finding(
        kind="metrics",
        id="duplicate_series",
        severity=Severity.LOW if differ else Severity.INFO,
        says=(
            f"{listed(s.name for s in twice)}: the same series stands more than once"
            + (", with different values" if differ else "")
            + ". Prometheus keeps one of them and counts the rest as duplicates."
        ),
        action="Give them a label that tells them apart, or stop one of the two sources.",
        entity=None,
        line=twice[0].line,
        cause=None,
        data={"duplicates": len(twice), "with_other_values": differ},
        sources=("prometheus/prometheus scrape/scrape.go (duplicate samples)",),
    )
