"""What the poster of a log tells beside it: remarks, and other tools' lines that decide something.

A remark begins with ``#``, or is prose or tool output that names one of a few things (peer memory,
GIDs, Fabric Manager …). It is used where a log line alone has several meanings, and never alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

_LIMIT: Final = 64
_LONGEST: Final = 600

_I = re.IGNORECASE
_ROCE = re.compile(r"\bRoCE", _I)
_GID_INDEX = re.compile(
    r"(?:GID|show_gids|RoCE)[^\n]{0,60}?\bindex\s{0,2}(?:is|=|:)?\s{0,2}(\d{1,3})\b"
    r"|\bindex\s{0,2}(\d{1,3})\b[^\n]{0,30}?(?:RoCE\s?v?2|IPv4)",
    _I,
)
_START = re.compile(
    r"\b(?:at|on|from) (?:the )?(?:very )?(?:start|beginning|init)"
    r"|\bfirst (?:collective|all-?reduce|iteration|step|message)|\bnever worked"
    r"|during init|at launch",
    _I,
)
_MID_RUN = re.compile(
    r"\bmid-?run|\bafter (?:\w+ ){0,3}(?:hours?|minutes?|days?|steps?|iterations?|epochs?)\b"
    r"|\b(?:ran|worked|runs) (?:fine |well )?(?:for|until|before)\b"
    r"|\bsuddenly\b|\bsporadic|\bintermittent",
    _I,
)
_AMD = re.compile(
    r"\bAMD\b|\bROCm\b|\bRCCL\b|amdkfd|amdgpu|\bMI[123]\d\d\w?\b|\bhip\b|librccl|\brocm|\bamd-smi\b"
)
_UNREGISTERED = re.compile(
    r"memory_peers[^\n]{0,120}"
    r"(?:no such file|does not exist|not exist|missing|cannot (?:open|access)|not found|absent)"
    r"|(?:no such file|does not exist|missing)[^\n]{0,80}memory_peers",
    _I,
)
_REGISTERED = re.compile(r"memory_peers/\w{1,20}/version[^\n]{0,4}\n?\s{0,4}\d{1,4}\.\d{1,4}")
_LOADED = re.compile(
    r"(?:nvidia_peermem|nvidia-peermem|nv_peer_mem)\b(?:[^\n]{0,30}\bloaded|\s{1,40}\d{3,9}\s{1,10}\d{1,3}\b)",
    _I,
)
_NOT_LOADED = re.compile(
    r"(?:nvidia_peermem|nvidia-peermem|nv_peer_mem)\b[^\n]{0,30}"
    r"\b(?:not loaded|not found|missing|absent)"
    r"|\bno (?:nvidia_peermem|nvidia-peermem)",
    _I,
)
_FABRIC_MANAGER = re.compile(r"fabric[- ]?manager", _I)
_RESTARTED = re.compile(
    r"\b(?:re-?start|stopp?|started|killed|upgrad|updat|crash|fail|dead|inactive|not running)", _I
)
_NODES = re.compile(r"\b(\d{1,5}|two|three|four|eight|multi|several)[- ]?nodes?\b", _I)
_ONE_NODE = re.compile(r"\b(?:single|one|1)[- ]node\b|\bsame (?:node|host)\b", _I)
_NVLS_GPU = re.compile(r"\b(?:[GHB][HB]?(?:100|200|300)|H20|H800|HGX|DGX)\b")
_NO_NVLS_GPU = re.compile(r"\b(?:A100|A800|V100|PCIe|L40S?|RTX|A10G?|T4|H100 NVL|H100 PCIe)\b", _I)
# The RTX 3090 has NVLink by a bridge.
_CONSUMER = re.compile(
    r"\b(?:RTX ?(?:20[678]0|30[5678]0|40[5-9]0|50[5-9]0)(?: ?(?:Ti|Super))?|GeForce)\b", _I
)
_NO_RDMA = re.compile(
    r"\b(?:no|without|not have|lacks?) (?:any )?(?:InfiniBand|IB|RDMA|RoCE)(?:[ /]\w{1,12}){0,2}?"
    r" (?:hardware|NICs?|cards?|adapters?|HCAs?|network|fabric)\b"
    r"|\bonly (?:have )?(?:(?:dual |bonded |plain )?\d{1,3} ?G(?:bE|bps|bit|b/s|E)\b"
    r"|(?:plain )?Ethernet\b)"
    r"|\b(?:plain )?Ethernet only\b",
    _I,
)
_WORLD = re.compile(
    r"world[_ -]?size\W{0,3}(?:is )?(\d{1,6})\b"
    r"|\b(?:of|with|has|on|total of) (\d{1,6}) (?:ranks|GPUs)\b"
    r"|\b(\d{1,6}) ranks in (?:all|total)\b",
    _I,
)
_OUT_OF_MEMORY = re.compile(r"(?:CUDA|HIP) out of memory")
_CRASH = re.compile(r"seg(?:mentation )?faults?|SIGSEGV|core dumped|crash", _I)
_HANG = re.compile(
    r"\bhangs?\b|\bhung\b|\bstuck\b|\bdeadlock|\bnever (?:returns|finishes|completes)|no progress",
    _I,
)
_RAILS = re.compile(r"\brails?\b|rail-?only|rail-?optimi[sz]ed", _I)
_SOME_FAIL = re.compile(
    r"(?:ring|all-?reduce)[^\n]{0,40}works?[^\n]{0,60}(?:gather|all-?to-?all|send|tree)[^\n]{0,20}fail",
    _I,
)
_ACS = re.compile(r"\bACS\b|\bIOMMU\b|\bVT-d\b")


# Prose and output of other tools that decides something, in lines without a prefix of NCCL.
_TELLS = re.compile(
    rb"(?i)memory_peers|peer_?mem|\bgid|fabric ?manager|\broce|seg(?:mentation )?fault|core dumped"
    rb"|\bhangs?\b|\bstuck\b|\brails?\b|\bnodes?\b|\b[GHB][HB]?[1-3]00|\bA100|\bROCm\b|\bAMD\b|\bMI[123]\d\d"
    rb"|\bACS\b|\bIOMMU\b|at (?:the )?start|mid-?run|(?:CUDA|HIP) out of memory"
    rb"|\bRTX\b|GeForce|\bworld[_ -]?size\b"
)
# Longer input is a log, and nobody's remark.
_SHORT: Final = 65_536


def remarks_of(number: int, block: bytes) -> Iterator[tuple[int, str]]:
    """Yield the remarks in a block of lines: those with ``#``, and prose that tells something.

    Args:
        number: of the block's first line.
        block: whole lines; a long one holds none.
    """
    if len(block) > _SHORT:
        return
    for line, raw in enumerate(block.split(b"\n"), number):
        text = raw.strip()
        remark = text[:1] == b"#"
        if remark or (
            b"CCL " not in text and b"WorkNCCL" not in text and _TELLS.search(text[:2_048])
        ):
            yield line, text[:_LONGEST].decode("utf-8", "replace")


@dataclass(slots=True)
class Remarks:
    """The remarks of a paste, and what they tell."""

    texts: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    def add(self, number: int, text: str) -> None:
        """Keep a remark, the first ones only."""
        if len(self.texts) < _LIMIT:
            self.texts.append(text.lstrip("#> \t")[:_LONGEST])
            self.lines.append(number)

    def _any(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        return next((m for t in self.texts if (m := pattern.search(t))), None)

    @property
    def out_of_memory(self) -> int:
        """Where a rank ran out of GPU memory, 0 if none did; the line is another reader's."""
        lines = zip(self.lines, self.texts, strict=True)
        return next((n for n, text in lines if _OUT_OF_MEMORY.search(text)), 0)

    @property
    def world_size(self) -> int:
        """How many ranks the job has, 0 if nobody says."""
        found = self._any(_WORLD)
        return int(found[1] or found[2] or found[3]) if found else 0

    @property
    def roce(self) -> bool:
        """The NICs are RoCE."""
        return self._any(_ROCE) is not None

    @property
    def gid_index(self) -> int | None:
        """The GID index that is right, as told."""
        found = self._any(_GID_INDEX)
        return int(found[1] or found[2]) if found else None

    @property
    def at_start(self) -> bool:
        """It fails from the start."""
        return self._any(_START) is not None and not self.mid_run

    @property
    def mid_run(self) -> bool:
        """It worked before."""
        return self._any(_MID_RUN) is not None

    @property
    def amd(self) -> bool:
        """The GPUs are AMD's."""
        return self._any(_AMD) is not None

    @property
    def peermem_unregistered(self) -> bool:
        """``/sys/kernel/mm/memory_peers`` has no entry for the GPU driver."""
        return self._any(_UNREGISTERED) is not None

    @property
    def peermem_loaded(self) -> bool | None:
        """Whether ``lsmod`` shows the peer memory module; None if nobody says."""
        if self._any(_NOT_LOADED):
            return False
        return True if self._any(_LOADED) else None

    @property
    def peermem_registered(self) -> bool:
        """The sysfs entry of the peer memory module is there."""
        return self._any(_REGISTERED) is not None

    @property
    def fabric_manager_restarted(self) -> bool:
        """Something was done to Fabric Manager, or it is not running."""
        return any(_FABRIC_MANAGER.search(t) and _RESTARTED.search(t) for t in self.texts)

    @property
    def several_nodes(self) -> bool | None:
        """Whether the job spans nodes; None if nobody says."""
        if self._any(_ONE_NODE):
            return False
        found = self._any(_NODES)
        return True if found and found[1] not in ("0", "1") else None

    @property
    def nvls_expected(self) -> bool:
        """The GPUs are of a kind that has NVLink SHARP."""
        return self._any(_NVLS_GPU) is not None and self._any(_NO_NVLS_GPU) is None

    @property
    def no_rdma(self) -> bool:
        """The machines have no RDMA network."""
        return self._any(_NO_RDMA) is not None

    @property
    def consumer(self) -> bool:
        """The GPUs are GeForce cards without peer access."""
        return self._any(_CONSUMER) is not None

    @property
    def crash(self) -> bool:
        """The program crashes."""
        return self._any(_CRASH) is not None

    @property
    def hang(self) -> bool:
        """The program hangs."""
        return self._any(_HANG) is not None

    @property
    def rails(self) -> bool:
        """The network is built in rails, or only some collectives fail."""
        return self._any(_RAILS) is not None or self._any(_SOME_FAIL) is not None

    @property
    def iommu(self) -> bool:
        """ACS or the IOMMU is mentioned."""
        return self._any(_ACS) is not None
