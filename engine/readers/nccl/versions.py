"""Versions of NCCL, RCCL and the driver that a log names; they must be the same on all ranks.

``NCCL version 2.27.5+cuda12.9`` is printed by one rank of each communicator, with or without a
prefix; ``RCCL version : 2.22.3-HEAD:9f0cbb7`` by AMD's. ``cudaDriverVersion 12040`` is the CUDA
version that the driver supports. Source: NVIDIA/nccl src/init.cc, ROCm/rccl src/init.cc.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from engine.model import Finding, Severity
from engine.readers.nccl.told import ORDER, Told

_VERSION = re.compile(
    r"(?P<library>[NR]CCL) version ?:? ?(?P<version>\d{1,2}\.\d{1,2}\.\d{1,3})"
    r"(?P<rest>[\w.+-]{0,40})"
)
_DRIVER = re.compile(r"^cudaDriverVersion (?P<version>\d{4,6})")
_SOURCE: Final = "NVIDIA/nccl v2.30.7 src/init.cc"
_MOST: Final = 1_024

Host = str | None


class Versions:
    """The versions in a log, by host, bounded."""

    def __init__(self) -> None:
        self._libraries: dict[str, dict[Host, int]] = {}
        self._drivers: dict[str, dict[Host, int]] = {}
        self.amd = False

    @property
    def library(self) -> str | None:
        """The one version of the library, None if there is none or more than one."""
        return next(iter(self._libraries)) if len(self._libraries) == 1 else None

    def info(self, host: Host, text: str, number: int) -> bool:
        """Take a set-up line; return whether it names a version."""
        found = _VERSION.search(text[:200])
        if found is not None:
            self.amd |= found["library"] == "RCCL"
            _add(self._libraries, found["version"] + found["rest"].rstrip(".-"), host, number)
            return True
        found = _DRIVER.match(text)
        if found is not None:
            _add(self._drivers, found["version"], host, number)
        return found is not None

    def tell(self) -> Iterator[Told]:
        """Yield versions that differ, or the one that is in use."""
        if len(self._libraries) > 1:
            yield self._differ()
        elif self._libraries:
            version, where = next(iter(self._libraries.items()))
            number = min(where.values())
            yield _note("version", number, f"{'RCCL' if self.amd else 'NCCL'} {version}.",
                        "Nothing by itself.", {"nccl_version": version})  # fmt: skip
        if len(self._drivers) > 1:
            said = "; ".join(f"{v}{_at(w)}" for v, w in list(self._drivers.items())[:6])
            number = min(n for w in self._drivers.values() for n in w.values())
            yield _note(
                "drivers_differ", number,
                f"The hosts' drivers support different CUDA versions ({said}; 12040 is 12.4).",
                "Bring all nodes to one driver; mixed ones work as long as the oldest is new"
                " enough.",
                {"cuda_driver_versions": list(self._drivers)[:64]},
            )  # fmt: skip

    def _differ(self) -> Told:
        bare = {v.partition("+")[0].partition("-")[0] for v in self._libraries}
        hosts = {h for w in self._libraries.values() for h in w if h}
        # Two programs' logs on one host hold two versions rightly; so may one process with two.
        sure = len(hosts) > 1 and len(bare) > 1
        said = "; ".join(f"{v}{_at(w)}" for v, w in list(self._libraries.items())[:6])
        number = min(n for w in self._libraries.values() for n in w.values())
        what = "different versions" if len(bare) > 1 else "different builds"
        return Told(
            ORDER["root"] if sure else ORDER["note"],
            number,
            Finding(
                kind="nccl",
                id="versions_differ",
                severity=Severity.HIGH if sure else Severity.LOW,
                says=(
                    f"This log shows {what} of the library: {said}."
                    + (" In one job all ranks must run the same one; mixed ones fail or hang."
                       if len(bare) > 1 else "")
                ),
                action=(
                    "Use one image on all nodes; look at LD_LIBRARY_PATH and the Python packages"
                    " (nvidia-nccl-cu12) for a second libnccl.so.2."
                ),
                entity=None,
                line=number,
                cause="collective_mismatch" if sure else None,
                data={"versions": list(self._libraries)[:64]},
                sources=(_SOURCE,),
            ),
        )  # fmt: skip


def _add(found: dict[str, dict[Host, int]], version: str, host: Host, number: int) -> None:
    if version in found or len(found) < 64:
        where = found.setdefault(version, {})
        if len(where) < _MOST:
            where.setdefault(host, number)


def _at(where: dict[Host, int]) -> str:
    hosts = sorted(h for h in where if h)
    if not hosts:
        return ""
    more = f" and {len(hosts) - 3} more" if len(hosts) > 3 else ""
    return f" on {', '.join(hosts[:3])}{more}"


def _note(id_: str, number: int, says: str, action: str, data: dict[str, object]) -> Told:
    finding = Finding(
        "nccl", id_, Severity.INFO, says, action, None, number, None, data, (), (_SOURCE,)
    )
    return Told(ORDER["note"], number, finding)
