"""Recordings as folded stacks (``py-spy record --format raw``): frames with ``;``, then a count."""

from __future__ import annotations

import re
from collections import Counter
from typing import ClassVar, Final

from engine.model import Finding, Severity
from engine.readers.base import Context, Result
from engine.traces.pyspy.frames import Activities, Frame, frame_of, own_frame

KIND: Final = "py_spy_raw"
_LINE: Final = re.compile(r"^(?P<stack>\S.*) (?P<count>\d{1,12})$")
_NO_FRAME: Final = ("process ", "thread ")
_MAX_PLACES: Final = 20_000
_TOP: Final = 5
# The default of StackFrameEntry.share_percent.
_SHARE: Final = 10.0
SOURCES: Final = ("benfred/py-spy README (record, raw format)",)


class FoldedReader:
    """Adds up what a program did, by activity and by function of its own."""

    triggers: ClassVar[tuple[bytes, ...]] = ()
    pattern: ClassVar[bytes] = rb"(?m)^\S[^\n]*\.pyx?:\d+\)(?:;[^\n]*)? \d+\r?$"
    # One recording goes on over many lines, but each of them has a count at its end.
    open: bool = False

    def __init__(self, context: Context) -> None:
        self._activities = Activities(context.catalogue)
        self._catalogue = context.catalogue
        self._samples = 0
        self._activity: Counter[str] = Counter()
        self._places: Counter[str] = Counter()
        self._tops: Counter[str] = Counter()
        self._line = 0

    def feed(self, number: int, text: str) -> bool:
        """Take one stack."""
        hit = _LINE.match(text)
        if hit is None:
            return False
        parts = [p for p in hit["stack"].split(";") if not p.startswith(_NO_FRAME)]
        frames = [f for f in map(frame_of, parts) if f is not None]
        if not frames or 2 * len(frames) < len(parts):
            return False
        frames.reverse()
        count = int(hit["count"])
        self._line = self._line or number
        self._samples += count
        entry = self._activities.of(frames)
        self._activity[str(entry["id"]) if entry else ""] += count
        self._count(self._tops, frames[0], count)
        own = own_frame(frames)
        if own is not None:
            self._count(self._places, own, count)
        return True

    def _count(self, counter: Counter[str], frame: Frame, count: int) -> None:
        if frame.shown in counter or len(counter) < _MAX_PLACES:
            counter[frame.shown] += count

    def finish(self) -> Result:
        """Return the shares of what the program did."""
        result = Result()
        if not self._samples:
            return result
        result.kinds.append(KIND)
        for id_, count in sorted(self._activity.items(), key=lambda kv: (-kv[1], kv[0])):
            share = 100 * count / self._samples
            entry = self._catalogue.entries.get("stack_frames", {}).get(id_)
            if (
                entry is None
                or share < entry.get("share_percent", _SHARE)
                or entry["severity"] == "info"
            ):
                continue
            result.findings.append(
                Finding(
                    kind=KIND,
                    id=id_,
                    severity=Severity(entry["severity"]),
                    says=f"In {share:.1f} % of {self._samples:,} samples the program "
                    f"{entry['says']}.",
                    action=entry["action"],
                    entity=None,
                    line=None,
                    cause=entry.get("cause"),
                    data={"share_percent": round(share, 2), "samples": self._samples},
                    sources=tuple(entry["source"]),
                )
            )
        result.causes = list(dict.fromkeys(f.cause for f in result.findings if f.cause))
        result.findings.append(self._summary())
        result.notes.append(
            "py-spy record leaves out threads that wait, unless --idle was given: waits are larger "
            "than these shares."
        )
        return result

    def _summary(self) -> Finding:
        def shares(counter: Counter[str]) -> list[str]:
            top = sorted(counter.items(), key=lambda kv: (-kv[1], kv[0]))[:_TOP]
            return [f"{name} {100 * n / self._samples:.1f} %" for name, n in top]

        places = shares(self._places) or shares(self._tops)
        return Finding(
            kind=KIND,
            id="shares",
            severity=Severity.INFO,
            says=f"{self._samples:,} samples. Most are under {'; '.join(places)}.",
            action="A speedscope or flame graph of the same recording shows the whole tree.",
            entity=None,
            line=self._line,
            cause=None,
            data={"samples": self._samples, "top_own": places, "top_innermost": shares(self._tops)},
            sources=SOURCES,
        )
