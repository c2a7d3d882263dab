"""When something happened, and over how many boots and days: the stamps of its lines together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from engine.readers.stamp import Stamp
from engine.units import duration, number

# Days kept by name; a log of a year has fewer with a fault.
_MOST_DAYS = 400
# Lines further apart than this are occasions of their own: one fault prints its lines, one for
# each channel or port, within seconds.
APART_S = 60.0
# A boot begins when the seconds since boot fall back to this little, to less than half.
_YOUNG_BOOT_S = 300.0
# A fault that goes on across midnight is on two days, but no repetition.
_NIGHT_S = 21_600.0


@dataclass(slots=True)
class Boots:
    """Tells the boots in a log apart by its seconds since boot; one of each machine."""

    _last: dict[str | None, float] = field(default_factory=dict)
    _number: dict[str | None, int] = field(default_factory=dict)

    def of(self, host: str | None, stamp: Stamp | None) -> int | None:
        """Return which boot of a machine a line belongs to, from 0; None if it cannot be told."""
        if stamp is None or stamp.boot_s is None:
            return None
        last = self._last.get(host)
        number_ = self._number.get(host, 0)
        if last is not None and stamp.boot_s < min(_YOUNG_BOOT_S, last / 2):
            number_ += 1
        if len(self._last) < 4_096 or host in self._last:
            self._last[host] = stamp.boot_s
            self._number[host] = number_
        return number_


@dataclass(slots=True)
class Period:
    """First and last time, days, boots and occasions of one thing.

    Attributes:
        first: stamp of the earliest line; of the first one where stamps cannot be compared.
        last: stamp of the latest line.
        occasions: groups of lines that lie more than a minute apart; 0 without stamps.
    """

    first: Stamp | None = None
    last: Stamp | None = None
    occasions: int = 0
    days: dict[str, None] = field(default_factory=dict)
    boots: set[int] = field(default_factory=set)
    _newest: Stamp | None = None

    def add(self, stamp: Stamp | None, boot: int | None = None) -> None:
        """Add the stamp of a line; None is a line without one."""
        if stamp is None:
            return
        if boot is not None and len(self.boots) < _MOST_DAYS:
            self.boots.add(boot)
        if stamp.day is not None and len(self.days) < _MOST_DAYS:
            self.days.setdefault(stamp.day)
        before, self._newest = self._newest, stamp
        if before is None or before.form != stamp.form or abs(stamp.order - before.order) > APART_S:
            self.occasions += 1
        if self.first is None or _earlier(stamp, self.first):
            self.first = stamp
        if self.last is None or not _earlier(stamp, self.last):
            self.last = stamp

    @property
    def spread(self) -> bool:
        """Whether it came on several days (not only across midnight) or in several boots."""
        first, last = self.first, self.last
        if len(self.boots) > 1:
            return True
        if first is None or last is None or len(self.days) < 2:
            return False
        return abs(last.order - first.order) > _NIGHT_S

    def data(self) -> dict[str, Any]:
        """Return the times as data; only what the log says.

        Keys: first_time and last_time (ISO 8601, or as the log writes them), first_boot_s and
        last_boot_s (seconds since boot) where there is no time of day, occasions, days, boots.
        """
        found: dict[str, Any] = {}
        if self.first is not None and self.last is not None:
            if self.first.text is not None and self.last.text is not None:
                found = {"first_time": self.first.text, "last_time": self.last.text}
            elif self.first.boot_s is not None and self.last.boot_s is not None:
                found = {"first_boot_s": self.first.boot_s, "last_boot_s": self.last.boot_s}
        if self.occasions > 1:
            found["occasions"] = self.occasions
        if len(self.days) > 1:
            found["days"] = len(self.days)
        if len(self.boots) > 1:
            found["boots"] = len(self.boots)
        return found

    def says(self, count: int) -> str:
        """Return a sentence: when, and for how long; empty if the log has no times."""
        first, last = self.first, self.last
        if first is None or last is None:
            return ""
        if count < 2 or first == last:
            return f"Time: {_when(first)}."
        over = ""
        if first.form == last.form and last.order > first.order and len(self.boots) < 2:
            over = f" ({duration(round(last.order - first.order, 1))})"
        on = []
        if len(self.days) > 1:
            on.append(f"on {len(self.days)} days")
        if len(self.boots) > 1:
            on.append(f"in {len(self.boots)} boots")
        extra = f", {' and '.join(on)}" if on else ""
        return f"First {_when(first)}, last {_when(last)}{over}{extra}."


def apart(one: Period, other: Period, seconds: float) -> bool:
    """Return whether two things lie more than so many seconds apart, as far as can be told."""
    a, b = (one.first, one.last), (other.first, other.last)
    if a[0] is None or a[1] is None or b[0] is None or b[1] is None:
        return False
    if len({s.form for s in (*a, *b) if s is not None}) != 1:
        return False
    if one.boots and other.boots and not one.boots & other.boots:
        return True
    return a[0].order - b[1].order > seconds or b[0].order - a[1].order > seconds


def _earlier(one: Stamp, other: Stamp) -> bool:
    """Return whether a stamp is surely earlier; boots and years do not show in seconds alone."""
    return one.form == other.form and one.form in {"zoned", "local"} and one.order < other.order


def _when(stamp: Stamp) -> str:
    if stamp.text is not None:
        return stamp.text
    return f"{number(stamp.boot_s or 0.0)} s after boot"
