"""NFS mount options: from ``mount``, ``/proc/mounts``, ``nfsstat -m`` and mountstats (nfs(5))."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from engine.model import Finding, Severity
from engine.readers.base import Result
from engine.readers.listing import Listing, at, filesystem, finding, result_of
from engine.readers.quantities import integer, listed, short

SOURCES: Final = ("nfs-utils 2.6.2 nfs(5)",)
_MOUNT: Final = re.compile(r"^\s{0,4}(\S{1,200}) on (\S{1,200}) type (nfs4?) \(([^)]{1,600})\)")
_PROC: Final = re.compile(
    r"^\s{0,4}(\S{1,200}:\S{0,200}) (/\S{0,200}) (nfs4?) (\S{2,600}) [0-9] [0-9]\s*$"
)
_NFSSTAT: Final = re.compile(r"^\s{0,4}(/\S{0,200}) from (\S{1,200}:\S{0,200})\s*$")
_FLAGS: Final = re.compile(r"^\s{0,8}Flags:\s{1,8}(\S{2,600})\s*$")
# Transfers below this are too small for a fast link: servers offer 1 MiB.
_SMALL_BYTES: Final = 131_072


@dataclass(frozen=True, slots=True)
class Mount:
    """A mount with its options as one text, separated by commas."""

    line: int
    host: str | None
    point: str
    fstype: str
    options: str


class NfsMountsReader(Listing[Mount]):
    """Reads NFS lines of mount tables; other file systems are left alone."""

    triggers: ClassVar[tuple[bytes, ...]] = (
        b" type nfs",
        b" nfs4 r",
        b" nfs r",
    )
    pattern: ClassVar[bytes] = rb"Flags:\s+r[ow],|/\S* from \S+:/"
    PATIENCE = 1

    _point: str | None = None

    def take(self, number: int, text: str) -> bool:
        """Take a line of a mount table."""
        mount, proc = _MOUNT.match(text), _PROC.match(text)
        found = mount or proc
        if found:
            self.kept.add(Mount(number, self.host, short(found[2], 120), found[3], found[4]))
            return True
        point = _NFSSTAT.match(text)
        if point:
            self._point = short(point[1], 120)
            self.inside = True
            return True
        flags = _FLAGS.match(text)
        if flags is None or "vers=" not in flags[1]:
            return False
        self.kept.add(Mount(number, self.host, self._point or "the mount", "nfs", flags[1]))
        self.inside = True
        return True

    def judge(self, records: Sequence[Mount]) -> Result:
        """Say which options cost speed or safety."""
        return result_of(["nfs_mount"], judge_mounts("nfs_mount", records))


def _options(text: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in text.split(",")[:64])
    return {name.strip(): value.strip() for name, _, value in pairs if name.strip()}


def judge_mounts(kind: str, mounts: Sequence[Mount], *, quiet: bool = False) -> Iterable[Finding]:
    """Say what the options of each mount mean.

    Args:
        kind: the reader's kind.
        mounts: the mounts.
        quiet: say nothing where nothing is odd.
    """
    sound: list[Mount] = []
    for mount in mounts:
        options = _options(mount.options)
        found = list(_costly(kind, mount, options))
        yield from found
        if not found:
            sound.append(mount)
    if sound and not quiet:
        first = _options(sound[0].options)
        yield finding(
            kind,
            "options",
            Severity.INFO,
            f"{at(sound[0].host)}NFS mounts {listed(m.point for m in sound)}: "
            f"vers={short(first.get('vers', '?'), 8)}, proto={short(first.get('proto', '?'), 8)}, "
            f"rsize={short(first.get('rsize', '?'), 12)}, nconnect="
            f"{short(first.get('nconnect', '1 (not set)'), 12)}; no option here costs speed.",
            "If one client is slow on a fast link: nconnect=8 (TCP) or proto=rdma. Options such as "
            "intr, rw, hard and async are defaults or ignored.",
            line=sound[0].line,
            data={"mount": sound[0].point, **_figures(first)},
            entity=filesystem(sound[0].point, sound[0].host),
            sources=SOURCES,
        )


def _figures(options: dict[str, str]) -> dict[str, object]:
    return {
        "vers": short(options["vers"], 8) if "vers" in options else None,
        "proto": short(options["proto"], 8) if "proto" in options else None,
        "rsize_bytes": integer(options.get("rsize", "")),
        "wsize_bytes": integer(options.get("wsize", "")),
        "nconnect": integer(options.get("nconnect", "")),
    }


def _costly(kind: str, mount: Mount, options: dict[str, str]) -> Iterable[Finding]:
    slow: list[str] = []
    if "noac" in options or options.get("actimeo") == "0":
        slow.append(
            "attributes are not cached (noac or actimeo=0), so every open and stat goes to the "
            "server"
        )
    if "sync" in options:
        slow.append("every write waits for the server (sync)")
    if options.get("lookupcache") == "none":
        slow.append("names are looked up at the server each time (lookupcache=none)")
    if options.get("proto", "").startswith("udp"):
        slow.append("it runs over UDP")
    for way in ("rsize", "wsize"):
        size = integer(options.get(way, ""))
        if size is not None and 0 < size < _SMALL_BYTES:
            slow.append(f"{way} is {size:,} bytes where servers offer 1,048,576")
    data = {"mount": mount.point, **_figures(options)}
    if slow:
        yield finding(
            kind,
            "slow_options",
            Severity.MEDIUM,
            f"{at(mount.host)}NFS mount {mount.point}: {listed(slow)}.",
            "Mount without these options (rsize and wsize are negotiated when left out), if "
            "nothing depends on them.",
            line=mount.line,
            cause="host_misconfigured",
            data=data,
            entity=filesystem(mount.point, mount.host),
            sources=SOURCES,
        )
    if "soft" in options:
        yield finding(
            kind,
            "soft_mount",
            Severity.LOW,
            f"{at(mount.host)}NFS mount {mount.point} is soft: after a time-out a write fails, and "
            "may leave a damaged checkpoint.",
            "Use hard (the default) for checkpoints.",
            line=mount.line,
            data=data,
            entity=filesystem(mount.point, mount.host),
            sources=SOURCES,
        )
