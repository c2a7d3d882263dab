"""The time at the start of a log line, in every form that kernel logs are printed or shipped in.

Boot-relative seconds (``dmesg``), ``dmesg -T``, ``dmesg --time-format iso``, syslog (RFC 3164 and
RFC 5424), ``journalctl`` short, short-iso, short-full, short-precise, short-unix and
short-monotonic, Talos, containerd, klog, Go's log package and Fabric Manager. A log says no more
than it says: a time without a year stays as it is written, one without a zone gets none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from typing import Any

_re = partial(re.compile, flags=re.ASCII)

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTH = "(?:" + "|".join(_MONTHS) + ")"
_DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
# What loggers and viewers put before a time: a priority, the facility of `dmesg --decode`, a pod.
_BEFORE = _re(
    r"\s{0,24}(?:<\d{1,3}>(?:1 )?|kern {0,2}[.:] ?\w{3,7} {0,4}: ?|\[pod/[^\]\s]{1,300}\] )?"
)
_TALOS = _re(r"(?P<host>[A-Za-z0-9][\w.:-]{0,252}): kern: {1,4}\w{3,8}: ?")
# pdsh and clush put the machine before each line. A name without digit or hyphen may be any word;
# what follows has to be a kernel's line: `dmesg` with or without -T, syslog, or the driver's words.
_REMOTE = _re(
    r"(?P<host>(?!kern|local\d|syslog|daemon)(?=[A-Za-z.]{0,60}[\d-])[A-Za-z0-9][\w.-]{0,252})"
    rf"(?:: {{1,4}}(?=\[ {{0,8}}\d{{1,9}}\.\d|\[{_DAY} {_MONTH} |{_MONTH} [ \d]\d \d\d:"
    r"|NVRM:|kernel: )| kernel: (?=NVRM:|nvidia))"
)
_ISO = _re(
    rf"\[?(?:{_DAY} )?(?P<date>\d{{4}}-\d\d-\d\d)[T ](?P<clock>{_CLOCK})"
    r"(?: ?(?P<zone>Z|UTC|[+-]\d\d:?\d\d))?\]?"
)
_CTIME = _re(
    rf"\[?(?:{_DAY} )(?P<month>{_MONTH}) (?P<day>[ \d]?\d) (?P<clock>{_CLOCK}) (?P<year>\d{{4}})\]"
)
_NAMED = _re(rf"\[(?P<month>{_MONTH}) (?P<day>\d\d) (?P<year>\d{{4}}) (?P<clock>{_CLOCK})\]")
_SYSLOG = _re(rf"(?P<month>{_MONTH}) (?P<day>[ \d]\d) (?P<clock>{_CLOCK})(?= )")
_GO = _re(rf"(?P<date>\d{{4}}/\d\d/\d\d) (?P<clock>{_CLOCK})")
_KLOG = _re(rf"[IWEF](?P<month>\d\d)(?P<day>\d\d) (?P<clock>{_CLOCK})")
_UNIX = _re(r"(?P<unix>1\d{9}\.\d{1,9})(?= )")
_BOOT = _re(r"\[ {0,12}(?P<boot>\d{1,9}\.\d{1,9})(?: <[ \d.]{1,24}>)?\]")
_HOST = _re(
    r" (?P<host>[A-Za-z0-9][\w.-]{0,252}) "
    r"(?:kernel(?:\[\d{1,8}\])?: ?|kernel - - (?:-|\[[^\]]{0,200}\]) (?:\ufeff)?"
    r"|[A-Za-z][\w./-]{0,63}\[\d{1,10}\]: |[A-Za-z][\w./-]{0,63} \d{1,10} - (?:-|"
    r"\[[^\]]{0,200}\]) )"
)
_LOGFMT = _re(
    r"\b(?:time|ts|timestamp)=\"?(?P<date>\d{4}-\d\d-\d\d)"
    r"[T ](?P<clock>\d\d:\d\d:\d\d(?:\.\d{1,9})?)"
    r"(?P<zone>Z|[+-]\d\d:?\d\d)?"
)
_LOGFMT_HOST = _re(r"\b(?:host|hostname|node|nodename)=\"?([A-Za-z0-9][\w.-]{0,252})\"?")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST_S = 32_503_680_000.0  # the year 3000: beyond it a number is no time
_REACH = 600


@dataclass(frozen=True, slots=True)
class Stamp:
    """When a line was written.

    Attributes:
        text: ISO 8601 where the log says the year, else as the log writes it; None with boot
            seconds alone.
        order: seconds that order stamps of one ``form``; Unix seconds for ``zoned``.
        form: ``zoned``, ``local`` (no zone said), ``yearless``, or ``boot``.
        boot_s: seconds since boot, where the line says so, also beside a time of day.
    """

    text: str | None
    order: float
    form: str
    boot_s: float | None = None

    @property
    def unix(self) -> float | None:
        """Unix seconds, None if the log does not say the zone or the year."""
        return self.order if self.form == "zoned" else None

    @property
    def day(self) -> str | None:
        """The calendar day as the log counts it, None with boot seconds alone."""
        if self.text is None:
            return None
        return self.text[:6] if self.form == "yearless" else self.text[:10]


@dataclass(frozen=True, slots=True)
class Head:
    """What stands before a message: time and machine, each where the line says it."""

    stamp: Stamp | None
    host: str | None


def head_of(text: str) -> Head:
    """Read time and host at the start of a line; both None where it has neither."""
    start = _BEFORE.match(text)
    at = start.end() if start else 0
    talos = _TALOS.match(text, at)
    host = talos["host"] if talos else None
    at = talos.end() if talos else at
    stamp, at = _wall(text, at)
    if stamp is None and host is None and (remote := _REMOTE.match(text, at)) is not None:
        host, at = remote["host"], remote.end()
        stamp, at = _wall(text, at)
    if stamp is not None:
        named = _HOST.match(text, at)
        if named:
            host, at = named["host"], named.end()
        at += text[at : at + 2] in (": ", " [")
    boot = _BOOT.match(text, at + (text[at : at + 1] == " "))
    if boot:
        boot_s = float(boot["boot"])
        if stamp is None:
            stamp = Stamp(None, boot_s, "boot", boot_s)
            named = _HOST.match(text, boot.end())  # journalctl -o short-monotonic
            host = named["host"] if named else host
        else:
            stamp = Stamp(stamp.text, stamp.order, stamp.form, boot_s)
    if stamp is None and "=" in text:
        return _logfmt(text, host)
    return Head(stamp, host)


def from_unix(seconds: float) -> Stamp | None:
    """Return the stamp of Unix seconds, None for a number that is no time."""
    if not 0.0 < seconds < _LATEST_S:
        return None
    moment = _EPOCH + timedelta(microseconds=round(seconds * 1e6))
    return Stamp(moment.isoformat(), round(seconds, 6), "zoned")


def from_value(value: Any) -> Stamp | None:
    """Return the stamp in a field of a log record.

    Text as `head_of` reads it, or a number of seconds, milliseconds, microseconds or nanoseconds
    since 1970, told apart by size.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        text = value.strip()
        if not (text.isascii() and text.replace(".", "", 1).isdigit() and len(text) <= 30):
            stamp, _ = _wall(f"{text[:64]} ", 0)  # that of syslog ends with a blank
            return stamp
        value = float(text)
    if not isinstance(value, int | float) or not 1e8 <= value < 1e20:
        return None
    seconds = float(value)
    while seconds > 1e11:
        seconds /= 1000.0
    return from_unix(seconds)


def _wall(text: str, at: int) -> tuple[Stamp | None, int]:
    """Read a time of day; return it and where it ends."""
    if (match := _ISO.match(text, at)) is not None:
        return _dated(match["date"], match["clock"], match["zone"]), match.end()
    if (match := _SYSLOG.match(text, at)) is not None:
        return _yearless(match["month"], match["day"], match["clock"], match[0]), match.end()
    for pattern in (_CTIME, _NAMED):
        if (match := pattern.match(text, at)) is not None:
            month = _MONTHS.index(match["month"]) + 1
            date = f"{match['year']}-{month:02d}-{int(match['day']):02d}"
            return _dated(date, match["clock"], None), match.end()
    if (match := _UNIX.match(text, at)) is not None:
        return from_unix(float(match["unix"])), match.end()
    if (match := _GO.match(text, at)) is not None:
        return _dated(match["date"].replace("/", "-"), match["clock"], None), match.end()
    if (match := _KLOG.match(text, at)) is not None and 1 <= int(match["month"]) <= 12:
        name = _MONTHS[int(match["month"]) - 1]
        written = f"{name} {match['day']} {match['clock']}"
        return _yearless(name, match["day"], match["clock"], written), match.end()
    return None, at


def _dated(date: str, clock: str, zone: str | None) -> Stamp | None:
    clock = clock.replace(",", ".")
    clock, _, fraction = clock.partition(".")
    text = f"{date}T{clock}" + (f".{fraction[:6]:0<6}" if fraction else "")
    try:
        moment = datetime.fromisoformat(text)
        offset = _offset(zone)
        order = (moment.replace(tzinfo=offset or UTC) - _EPOCH).total_seconds()
    except (ValueError, OverflowError):
        return None
    if offset is None:
        return Stamp(moment.isoformat(), order, "local")
    return Stamp(moment.replace(tzinfo=offset).isoformat(), order, "zoned")


def _offset(zone: str | None) -> timezone | None:
    if zone is None:
        return None
    if zone in {"Z", "UTC"}:
        return UTC
    minutes = int(zone[1:3]) * 60 + int(zone[-2:])
    return timezone(timedelta(minutes=-minutes if zone[0] == "-" else minutes))


def _yearless(month: str, day: str, clock: str, written: str) -> Stamp | None:
    clock, _, fraction = clock.replace(",", ".").partition(".")
    hour, minute, second = map(int, clock.split(":"))
    number = int(day)
    if not (1 <= number <= 31 and hour < 24 and minute < 60 and second < 61):
        return None
    days = _MONTHS.index(month) * 31 + number
    order = days * 86400.0 + hour * 3600 + minute * 60 + second + float(f"0.{fraction or 0}")
    return Stamp(written, order, "yearless")


def _logfmt(text: str, host: str | None) -> Head:
    """Read ``time="…" … host=…``, which may stand anywhere in the first part of a line."""
    match = _LOGFMT.search(text, 0, _REACH)
    if match is None:
        return Head(None, host)
    named = _LOGFMT_HOST.search(text)
    return Head(_dated(match["date"], match["clock"], match["zone"]), named[1] if named else host)
