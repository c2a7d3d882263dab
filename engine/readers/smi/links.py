"""Reader of ``nvidia-smi nvlink`` (``-s``, ``-e``, ``-c``, ``-p``) and of ``nvidia-smi -L``.

Both list GPUs by a line ``GPU 0: NAME (UUID: …)``; what stands under it tells which of them it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from engine.model import Entity, Kind
from engine.readers.base import Context, Result
from engine.readers.listing import Kept, Listing
from engine.readers.smi.state import shown

_GPU: Final = re.compile(
    r"^\s{0,12}GPU ([0-9]{1,3}): (?:(\S.{0,80}?) \(UUID: ([A-Za-z0-9-]{4,60})\)?(?: {0,4}(\S.*))?"
    r"|(\S.{0,80}))$"
)
_MIG: Final = re.compile(
    r"^\s{0,12}MIG (\S{1,24}) +Device +([0-9]{1,2}): \(UUID: (MIG-[A-Za-z0-9/-]{1,90})\)"
)
_STATUS: Final = re.compile(
    r"^\s{0,24}Link ([0-9]{1,2}): (?:([0-9]{1,4}(?:\.[0-9]{1,6})?) GB/s|(<inactive>))\s*$"
)
_COUNT: Final = re.compile(
    r"^\s{0,24}Link ([0-9]{1,2}): ([A-Za-z][\w /-]{1,60}): ([0-9]{1,20})\s*$"
)
_RATE: Final = re.compile(r"^\s{0,24}Link ([0-9]{1,2}): ([A-Za-z][\w /-]{1,60}): (\S{1,40})")
_ABLE: Final = re.compile(
    r"^\s{0,24}Link ([0-9]{1,2}), (\S.{0,60}?) (?:is )?supported: (true|false)\s*$"
)
_REMOTE: Final = re.compile(r"^\s{0,24}Link [0-9]{1,2}: (?:Remote Device )?[0-9A-Fa-f]{4,8}:")
_SAID: Final = re.compile(
    r"(all links are inactive|does not have or support nvlink|no nvlink|not supported)",
    re.IGNORECASE,
)
_MAKER: Final = re.compile(r"(?:NVIDIA|Tesla|Quadro|GeForce)\b")
_ELIDED: Final = re.compile(r"^\s*(?:\.{2,}|…|\[\.{3}\]|\[…\])\s*$")
MAX_GPUS: Final = 512


@dataclass(slots=True)
class LinkGpu:
    """The links of one GPU.

    Attributes:
        speeds: link to its speed in one direction (GB/s), 0 where it is inactive.
        errors: (link, counter as printed) to its count.
        unable: capabilities that links lack, by link.
        elided: the paste leaves links out between two others.
        inactive: all links are said to be inactive in words.
        migs: profiles of its MIG devices.
    """

    index: int
    name: str
    uuid: str | None
    host: str | None
    line: int
    speeds: dict[int, float] = field(default_factory=dict)
    errors: dict[tuple[int, str], int] = field(default_factory=dict)
    unable: dict[int, list[str]] = field(default_factory=dict)
    able: bool = False
    elided: bool = False
    inactive: bool = False
    without: bool = False
    migs: list[str] = field(default_factory=list)

    @property
    def label(self) -> str:
        """How to call the GPU in a sentence."""
        return f"GPU {self.index}" if self.index >= 0 else "the GPU"

    @property
    def entity(self) -> Entity | None:
        """The GPU as an entity; None for links without the line that names it."""
        if self.index < 0:
            return None
        name = f"{self.host}:{self.index}" if self.host else f"GPU {self.index}"
        return Entity(
            Kind.GPU,
            name,
            host=self.host,
            gpu=self.index,
            uuid=self.uuid,
            model=self.name or None,
        )

    def fill(self) -> None:
        """Add the links that a paste left out, where those that work have one speed."""
        active = {speed for speed in self.speeds.values() if speed}
        if not self.elided or len(active) != 1:
            return
        speed = active.pop()
        for link in range(max(self.speeds)):
            self.speeds.setdefault(link, speed)


class SmiLinkReader(Listing[LinkGpu]):
    """Reads GPUs and what stands under each: link states, counters, capabilities, MIG devices."""

    triggers: ClassVar[tuple[bytes, ...]] = (
        b"GPU 0: ",
        b"(UUID: GPU-",
        b"Link 0: ",
        b"Link 0, ",
        b": <inactive>",
        b"Replay Errors: ",
        b" is supported: ",
    )
    PATIENCE: ClassVar[int] = 2

    def __init__(
        self, context: Context, host: str | None = None, kept: Kept[LinkGpu] | None = None
    ) -> None:
        super().__init__(context, host, Kept(MAX_GPUS) if kept is None else kept)
        self._gpus: dict[int, LinkGpu] = {}
        self._gpu: LinkGpu | None = None

    def take(self, number: int, text: str) -> bool:
        """Take a GPU, or a line under one."""
        text = text.expandtabs()
        taken = self._under(number, text) or self._start(number, text)
        self.inside |= taken
        return taken

    def end(self) -> None:
        """Links that come later belong to a GPU named anew."""
        self._gpu = None

    def judge(self, records: Sequence[LinkGpu]) -> Result:
        """Say what the links show."""
        from engine.readers.smi.linkstate import link_result  # noqa: PLC0415 - only if there are any

        return link_result(records, self.context)

    def _start(self, number: int, text: str) -> bool:
        found = _GPU.match(text)
        if found is None:
            return False
        # Prose and other tools number GPUs too: a UUID, a name, or the table around it is needed.
        name = (found[2] or found[5]).strip()
        if not (found[3] or self.inside or _MAKER.match(name)):
            return False
        index = int(found[1])
        gpu = self._gpus.get(index)
        if gpu is None or (found[3] and gpu.uuid and gpu.uuid != found[3]):
            gpu = LinkGpu(index, shown(name), found[3], self.host, number)
            self.kept.add(gpu)
            if len(self._gpus) < MAX_GPUS:
                self._gpus[index] = gpu
        self._gpu = gpu
        if found[4]:
            self._said(found[4])
        return True

    def _under(self, number: int, text: str) -> bool:
        gpu = self._gpu
        if (status := _STATUS.match(text)) is not None:
            self._anyone(number).speeds[int(status[1])] = float(status[2]) if status[2] else 0.0
        elif (count := _COUNT.match(text)) is not None:
            self._anyone(number).errors[int(count[1]), count[2].strip()] = int(count[3])
        elif (able := _ABLE.match(text)) is not None:
            gpu = self._anyone(number)
            gpu.able = True
            if able[3] == "false":
                gpu.unable.setdefault(int(able[1]), []).append(shown(able[2]))
        elif (mig := _MIG.match(text)) is not None:
            if gpu is not None and len(gpu.migs) < 64:
                gpu.migs.append(mig[1])
        elif gpu is not None and _ELIDED.match(text):
            gpu.elided = True
        elif _REMOTE.match(text) or (_RATE.match(text) and self.inside):
            return True
        else:
            return gpu is not None and self.inside and self._said(text)
        return True

    def _said(self, text: str) -> bool:
        said = _SAID.search(text)
        if said is None or self._gpu is None:
            return False
        if "inactive" in said[1].lower():
            self._gpu.inactive = True
        else:
            self._gpu.without = True
        return True

    def _anyone(self, number: int) -> LinkGpu:
        """The GPU that is being read; links without one are those of GPU 0 of the paste."""
        if self._gpu is None:
            self._gpu = self._gpus.get(-1) or LinkGpu(-1, "", None, self.host, number)
            if -1 not in self._gpus:
                self._gpus[-1] = self._gpu
                self.kept.add(self._gpu)
        return self._gpu
