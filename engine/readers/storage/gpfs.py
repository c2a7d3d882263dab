"""Readers of IBM Storage Scale: ``mmhealth node show``, ``mmgetstate``, ``mmlsdisk``, ``mmdf``.

Source: IBM Storage Scale documentation, command reference; formats as in public collectors of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, Final

from engine.readers.base import Result
from engine.readers.listing import Listing, result_of
from engine.readers.quantities import decimal, short, size_bytes
from engine.readers.storage.gpfs_verdict import (
    Component,
    Disk,
    NodeState,
    Space,
    judge_components,
    judge_disks,
    judge_space,
    judge_states,
)

_NODE: Final = re.compile(r"^\s{0,4}Node (name|status):\s{1,16}(\S{1,63})")
_COMPONENT: Final = re.compile(
    r"^\s{0,8}([A-Za-z][\w-]{1,30})\s{1,24}"
    r"(HEALTHY|DEGRADED|FAILED|TIPS|UNKNOWN|CHECKING|DISABLED|DEPEND|STARTING|STOPPED|SUSPENDED)"
    r"\s{1,20}(?:([0-9]{1,6} \w{1,8} ago|Now|now)\s{1,24})?(\S.{0,200})$"
)


class MmhealthReader(Listing[Component]):
    """Reads ``mmhealth node show``: a line a component with its state and reasons."""

    triggers: ClassVar[tuple[bytes, ...]] = (b"Node status: ", b"Node name: ")

    def take(self, number: int, text: str) -> bool:
        """Take a line of ``mmhealth node show``."""
        head = _NODE.match(text)
        if head:
            if head[1] == "name":
                self.host = short(head[2])
            self.inside = True
            return True
        row = _COMPONENT.match(text) if self.inside else None
        if row is None:
            return self.inside and text.lstrip().startswith(
                ("Status Change:", "Component ", "----")
            )
        self.kept.add(Component(number, self.host, row[1].upper(), row[2], short(row[4], 200)))
        return True

    def judge(self, records: Sequence[Component]) -> Result:
        """Say which components are not healthy."""
        return result_of(["mmhealth"], judge_components(records))


_STATE_HEADER: Final = re.compile(r"^\s{0,4}Node number\s{1,8}Node name\s{1,24}.{0,60}GPFS state\b")
_STATE: Final = re.compile(
    r"^\s{1,16}[0-9]{1,6}\s{1,12}([\w.-]{1,63})\s{1,24}(?:[0-9*]{1,6}\s{1,12}){0,3}"
    r"(active|arbitrating|down|unknown|unknown_\w{1,16}|unresponsive)(?:\s.{0,60})?$"
)


class MmgetstateReader(Listing[NodeState]):
    """Reads ``mmgetstate -a``, with or without ``-L``."""

    triggers: ClassVar[tuple[bytes, ...]] = (b"GPFS state",)

    def take(self, number: int, text: str) -> bool:
        """Take a line of ``mmgetstate``."""
        if _STATE_HEADER.match(text):
            self.inside = True
            return True
        row = _STATE.match(text) if self.inside else None
        if row is None:
            return self.inside and set(text.strip()) == {"-"}
        self.kept.add(NodeState(number, self.host, short(row[1]), row[2]))
        return True

    def judge(self, records: Sequence[NodeState]) -> Result:
        """Say on which nodes the daemon is not active."""
        return result_of(["mmgetstate"], judge_states(records))


_DISK_HEADER: Final = re.compile(r"^\s{0,4}name\s{1,20}type\s{1,12}size\s{1,12}group\s")
_DISK: Final = re.compile(
    r"^\s{0,4}(\S{1,40})\s{1,20}(nsd|\w{2,8})\s{1,12}[0-9]{3,5}\s{1,12}[-0-9,]{1,16}\s{1,12}"
    r"(?:[Yy]es|[Nn]o)\s{1,12}(?:[Yy]es|[Nn]o)\s{1,12}"
    r"([a-z][a-z -]{2,24}?)\s{1,12}(up|down|recovering|unrecovered)\s"
)


class MmlsdiskReader(Listing[Disk]):
    """Reads ``mmlsdisk``, with or without ``-e``."""

    triggers: ClassVar[tuple[bytes, ...]] = (
        b"driver   sector",
        b"All disks up and ready",
    )

    def take(self, number: int, text: str) -> bool:
        """Take a line of ``mmlsdisk``."""
        if "All disks up and ready" in text:
            self.kept.add(Disk(number, self.host, "", "ready", "up"))
            return True
        if _DISK_HEADER.match(text) or re.match(
            r"^\s{0,4}disk\s{1,20}driver\s{1,12}sector\s", text
        ):
            self.inside = True
            return True
        if not self.inside:
            return False
        row = _DISK.match(text + " ")
        if row:
            self.kept.add(Disk(number, self.host, short(row[1]), row[3].strip(), row[4]))
        return bool(row) or text.lstrip().startswith("----")

    def judge(self, records: Sequence[Disk]) -> Result:
        """Say which disks are down."""
        return result_of(["mmlsdisk"], judge_disks(records))


_MMDF: Final = re.compile(
    r"^\s{0,4}(\S{1,40}|\(pool total\)|\(total\)|\(data\)|\(metadata\))"
    r"\s{1,24}([0-9.]{1,18}[KMGTP]?)\s{1,60}"
    r"(?:-?[0-9,]{1,16}\s{1,12}(?:[Yy]es|[Nn]o)\s{1,12}(?:[Yy]es|[Nn]o)\s{1,20})?"
    r"([0-9.]{1,18}[KMGTP]?) \(\s{0,3}([0-9]{1,3})%\)"
)
_SPACE_HEADER: Final = re.compile(r"^\s{0,4}disk\s{1,24}disk size\s{1,8}failure holds\s")
_SPACE_LINES: Final = (
    "name ",
    "-----",
    "=====",
    "disk ",
    "Inode Information",
    "Number of free inodes:",
    "Number of allocated inodes:",
)
_INODES: Final = re.compile(
    r"^\s{0,4}(Number of used inodes|Maximum number of inodes):\s{1,20}([0-9]{1,18})\s*$"
)


class MmdfReader(Listing[Space]):
    """Reads ``mmdf``: free blocks of disks and pools, and inodes."""

    triggers: ClassVar[tuple[bytes, ...]] = (
        b"failure holds    holds  ",
        b"Disks in storage pool:",
        b"Maximum number of inodes:",
        b"Number of used inodes:",
    )
    PATIENCE = 4

    def take(self, number: int, text: str) -> bool:
        """Take a line of ``mmdf``."""
        inodes = _INODES.match(text)
        if inodes:
            self.kept.add(Space(number, self.host, inodes[1].lower(), float(inodes[2]), None))
            return True
        if _SPACE_HEADER.match(text) or text.lstrip().startswith("Disks in storage pool:"):
            self.inside = True
            return True
        row = _MMDF.match(text) if self.inside else None
        if row is None:
            return self.inside and text.lstrip().startswith(_SPACE_LINES)
        free = decimal(row[4])
        if free is not None and free <= 100:
            size = size_bytes(row[2]) or 0.0
            self.kept.add(Space(number, self.host, short(row[1]), size, 100 - free))
        return True

    def judge(self, records: Sequence[Space]) -> Result:
        """Say how full the pools and the inodes are."""
        return result_of(["mmdf"], judge_space(records))
