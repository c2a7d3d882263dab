"""Warnings of NCCL that the knowledge base does not have: counted and quoted shortly."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from engine.model import Finding, Severity
from engine.readers.nccl.lines import NcclLine, Places
from engine.readers.nccl.messages import entity, printable
from engine.readers.nccl.told import ORDER, Told

_MOST: Final = 64
_QUOTED: Final = 120


class Unknown:
    """Gathers them by the place that printed them, bounded."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[str, Places]] = {}
        self.overflow = 0

    @property
    def seen(self) -> bool:
        """Whether there was any."""
        return bool(self._seen)

    def add(self, line: NcclLine) -> None:
        """Count a line."""
        key = line.place or line.text[:40]
        if key not in self._seen:
            if len(self._seen) >= _MOST:
                self.overflow += 1
                return
            self._seen[key] = (printable(line.text, _QUOTED), Places(line.number))
        self._seen[key][1].add(line)

    def tell(self) -> Iterator[Told]:
        """Yield each kind once."""
        for place, (text, places) in self._seen.items():
            where = places.words()
            if not text:
                continue
            yield Told(
                ORDER["symptom"],
                places.line,
                Finding(
                    kind="nccl",
                    id="warning",
                    severity=Severity.MEDIUM,
                    says=(
                        f'NCCL warns: "{text}". gpuwhy does not know this message.'
                        + (f" Printed {where}." if where else "")
                        + (f" Seen {places.count} times." if places.count > 1 else "")
                    ),
                    action=(
                        "The source file in the line says what NCCL was doing; look the text up"
                        " in the NCCL repository's issues, with the version of the log."
                    ),
                    entity=entity(places),
                    line=places.line,
                    cause=None,
                    data={"place": printable(place, 80), "count": places.count},
                    sources=("NVIDIA/nccl",),
                ),
            )
