"""Drives and local file systems that fail: NVMe, block devices, RAID, ext4 and XFS.

Lines: Linux drivers/nvme/host/pci.c, block/blk-core.c, drivers/md, fs/ext4, fs/xfs.
"""

from __future__ import annotations

import re

from engine.model import Severity
from engine.readers.host.part import Rule

_NVME = "Linux drivers/nvme/host"

DRIVE_MARKS: tuple[str, ...] = (
    "nvme nvme",
    "I/O error, dev ",
    "medium error, dev ",
    "Buffer I/O error on dev",
    "EXT4-fs error (device ",
    "Remounting filesystem read-only",
    "hutting down filesystem",
    "lost async page write",
    "Disk failure on ",
    "I/O error while writing superblock",
    " path - failing I/O",
)

DRIVE_RULES: tuple[Rule, ...] = (
    Rule(
        "nvme_timeout",
        re.compile(
            r"nvme (?P<drive>nvme\d{1,4}): I/O (?:tag )?(?P<tag>\d{1,6}).{0,60}? QID "
            r"(?P<queue>\d{1,5}) timeout, "
            r"(?P<then>[\w ]{4,40})"
        ),
        Severity.HIGH,
        "The NVMe drive {drive}{of} did not finish a request in time ({then}).",
        "nvme smart-log /dev/{drive}, nvme error-log; look for PCIe errors beside it. Move "
        "work "
        "off the drive.",
        "storage_slow",
        apart=("drive",),
        source=_NVME,
    ),
    Rule(
        "nvme_dead",
        re.compile(
            r"nvme (?P<drive>nvme\d{1,4}): (?P<what>controller is down; will reset|Removing "
            r"after probe failure|"
            r"Device not ready; aborting|Device shutdown incomplete|Disabling device after "
            r"reset failure|"
            r"controller is down)(?:.{0,60}?CSTS=(?P<csts>0x[0-9a-f]{1,8}))?"
        ),
        Severity.HIGH,
        "The NVMe drive {drive}{of} is gone or being reset: {what}.",
        "Look for PCIe errors and a lost slot; CSTS 0xffffffff means that the drive does not "
        "answer on the bus. nvme list, then a power cycle.",
        "storage_slow",
        apart=("drive", "what"),
        source=_NVME,
    ),
    Rule(
        "block_error",
        re.compile(
            r"(?<!Buffer )I/O error, dev (?P<drive>[\w-]{2,32}), sector (?P<sector>\d{1,20})"
        ),
        Severity.HIGH,
        "The block device {drive}{of} fails to read or write.",
        "smartctl -a or nvme smart-log of that drive; replace it if it has media errors.",
        apart=("drive",),
        source="Linux block/blk-core.c",
    ),
    Rule("buffer_error", re.compile(r"Buffer I/O error on dev|lost async page write")),
    Rule(
        "read_only",
        re.compile(
            r"(?P<filesystem>EXT4-fs|XFS|BTRFS)(?: error)? \(?(?:device "
            r")?(?P<drive>[\w./-]{2,48})\)?.{0,80}?"
            r"(?P<what>Remounting filesystem read-only|shutting down filesystem|has been shut "
            r"down)",
            re.IGNORECASE,
        ),
        Severity.HIGH,
        "The file system on {drive}{of} was taken out of use after an error ({what}).",
        "Look for the drive's errors above; repair (fsck, xfs_repair) after the drive is sound.",
        apart=("drive",),
        source="Linux fs",
    ),
    Rule(
        "medium_error",
        re.compile(
            r"critical (?P<what>medium|target) error, dev (?P<drive>[\w-]{2,32}), sector "
            r"(?P<sector>\d{1,20})"
        ),
        Severity.HIGH,
        "The drive {drive}{of} reports a {what} error: what stood there is lost.",
        "smartctl -a or nvme smart-log of that drive; replace it.",
        apart=("drive",),
        source="Linux block/blk-core.c",
    ),
    Rule(
        "raid_failure",
        re.compile(
            r"md/(?P<level>raid\d{1,2}):?(?P<array>md[\w]{1,12}): Disk failure on "
            r"(?P<drive>[\w-]{2,32})"
        ),
        Severity.HIGH,
        "The RAID {array}{of} ({level}) dropped the drive {drive}.",
        "cat /proc/mdstat, mdadm --detail; replace the drive. Until it is rebuilt the array is "
        "slower and has no spare.",
        apart=("array", "drive"),
        source="Linux drivers/md",
    ),
    Rule(
        "superblock_error",
        re.compile(
            r"EXT4-fs \((?P<drive>[\w./-]{2,48})\): I/O error while (?P<what>writing superblock)"
        ),
        Severity.HIGH,
        "The file system on {drive}{of} can no longer be written (I/O error while {what}).",
        "Look for the drive's errors above; move work off it and check the drive.",
        apart=("drive",),
        source="Linux fs/ext4/super.c",
    ),
    Rule(
        "nvme_no_path",
        re.compile(r"block (?P<drive>nvme\w{1,12}): no (?:available|usable) path - failing I/O"),
        Severity.HIGH,
        "The NVMe drive {drive}{of} is reached by no path any more: its requests fail.",
        "nvme list-subsys; look for PCIe errors or a lost fabric connection beside it.",
        "storage_slow",
        apart=("drive",),
        source=_NVME,
    ),
    Rule("ext4_error", re.compile(r"EXT4-fs error \(device ")),
)
