"""Learn what people write beside a table: nodes, GPUs, network cards, and figures in words.

``3 nodes x 8 A100, 4x HDR 200 Gb/s per node``, ``2x8 H100, RoCE 8x 400G: busbw 231 GB/s``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from engine.readers.nccl_tests.setup import COLLECTIVES, Setup

_WORDS = {"one": 1, "single": 1, "two": 2, "three": 3, "four": 4, "six": 6, "eight": 8}
_N = r"(\d{1,5}|" + "|".join(_WORDS) + r")"
_X = r"[ \t]{0,2}[x\u00d7*][ \t]{0,2}"
_MODEL = (
    r"((?i:GB300|GB200|GH200|B300|B200|H200|H100|H800|A100|A800|V100S?|L40S)|H20|A10G|A10|A16|A30"
    r"|A40|L40|L20|L4|T4|P100|RTX[ -]?(?:A|PRO[ -])?\d{4}|MI3\d\d[AX]|MI250X?|MI210|MI100)"
)
_FORM = r"(?:[ -]\d{2,3} ?GB)?[ -](SXM\d?|PCIe|NVL\d{0,2}|HBM3e?)\b"
_NODE = r"(?:nodes?|hosts?|servers?|machines?|boxes)\b"
_CARD = r"(?:NICs?|HCAs?|cards?|ports?|adapters?|(?:QSFP\w{0,4}[ \t])?cables?)\b"
_GPU = r"(?:GPUs?|ranks?|gpus?)\b"
_MAKE = r"(?:(?:ConnectX-?\d|CX-?\d|Mellanox|NVIDIA|Intel|Broadcom|EFA|RoCE\w{0,2}|IB)[ \t]{1,2})"

_GRID = re.compile(
    rf"\b{_N}{_X}{_N}(?:{_X}|[ \t])[ \t]{{0,2}}(?:NVIDIA )?{_MODEL}\b", re.IGNORECASE
)
_NODES_OF = re.compile(
    rf"\b{_N}[ \t]{_NODE}[ \t,]{{0,3}}([x\u00d7*]|of|with|each|,)?[ \t]{{0,2}}"
    rf"{_N}(?:{_X}|[ \t])(?:NVIDIA )?(?:{_MODEL}|GPUs?)\b",
    re.IGNORECASE,
)
_NODES = re.compile(
    rf"\b{_N}[ \t-]{{0,2}}(?:(?:HGX|DGX|GPU|{_MODEL})[ \t]{{1,2}})?{_NODE}", re.IGNORECASE
)
_SOME = re.compile(
    rf"\b{_N}(?:{_X}|[ \t])(?:NVIDIA |AMD |Instinct ){{0,2}}{_MODEL}\b", re.IGNORECASE
)
# A rack of 18 trays with 4 GPUs each.
_RACKS = re.compile(rf"\bNVL72\b.{{0,40}}\b{_N}[ -](?:full[ -])?racks?\b", re.IGNORECASE)
# "8xH100" has no word's start before the model.
_START = r"(?:\b|(?<=\d[x\u00d7]))"
MODEL = re.compile(rf"{_START}{_MODEL}\b")
"""A GPU model by its short name."""
_FORMED = re.compile(rf"{_START}{_MODEL}{_FORM}", re.IGNORECASE)
_BOARD = re.compile(r"(?<!no )(?<!without )(?<!w/o )\b(?:HGX|DGX|SXM\d?|NVSwitch|NVLink)\b")
_PCIE_BOARD = re.compile(rf"\bPCIe[ -]{_MODEL}\b", re.IGNORECASE)
_PER_NODE = re.compile(
    rf"\b{_N}[ \t-]{{0,2}}{_GPU}[ \t]?(?:(?:per|/|in each|on each|each|a)[ \t]?{_NODE}|each\b)",
    re.IGNORECASE,
)
_RANKS = re.compile(rf"\b{_N}[ \t-]{{0,2}}{_GPU}", re.IGNORECASE)

# "40G" may be memory and "16G" a message size: a bare G only with rates of network cards.
_RATE = (
    r"(?:(?<!-[be] )(10|25|40|50|56|100|200|400|800)[ \t]?(?:Gb/s|Gbps|Gbit/s|Gbit|GbE|Gb)"
    r"|(?<!-[be] )(25|50|100|200|400|800)G)(?![A-Za-z/])"
)
_STANDARD = r"(FDR|EDR|HDR100|HDR|NDR200|NDR|XDR)"
_CARDS_RATED = re.compile(
    rf"(?<![\w-]){_N}(?:{_X}|[ \t]){_MAKE}{{0,2}}{_STANDARD}?[ \t-]{{0,2}}{_MAKE}{{0,2}}{_RATE}",
    re.IGNORECASE,
)
_RATED_CARDS = re.compile(rf"{_RATE}[ \t]{{0,2}}[x\u00d7*][ \t]{{0,2}}(\d{{1,2}})\b")
_CARDS_NAMED = re.compile(rf"(?<![(\w-]){_N}(?:{_X}|[ \t]){_MAKE}?{_STANDARD}(\d{{3}})?\b")
_CARDS = re.compile(rf"\b{_N}(?:{_X}|[ \t]){_MAKE}{{0,2}}{_CARD}", re.IGNORECASE)
_RATED = re.compile(rf"\b{_STANDARD}?[ \t-]?{_RATE}")
_STANDARD_ALONE = re.compile(rf"\b{_STANDARD}(\d{{3}})?\b")
_TOTAL = re.compile(r"\b(\d{1,4}(?:\.\d{1,2})?)[ \t]?GB/s[ \t](?:in )?total\b", re.IGNORECASE)
_GBIT = {"FDR": 56, "EDR": 100, "HDR100": 100, "HDR": 200, "NDR200": 200, "NDR": 400, "XDR": 800}
_ROCE, _IB = re.compile(r"\bRoCE", re.IGNORECASE), re.compile(r"\b(?:InfiniBand|IB|Quantum)\b")

_V = r"(\d{1,5}(?:\.\d{1,4})?)"
_UNIT = r"[ \t*]{0,4}(?-i:GB/[sS]|GBps|GB/sec|GiB/s)"
_RANGE = rf"{_V}(?:[ \t]?(?:-|->|\u2013|to|\.\.)[ \t]?{_V})?"
_BUS = r"(?:bus[ _-]?bw|bus[ _-]?bandwidth)"
_SIZED = r"(?:(?:at|@|for)[ \t]\d{1,5}[ \t]?[KMG]i?B?\b[^\d\n]{0,12})?"
_NO_OTHER_UNIT = r"(?!\d|[ \t]?(?:Gb|us\b|ms\b|%|x\b|[KMG]i?B\b(?!/)|[KMG]\b(?!B)))"
_BUSBW = re.compile(
    rf"(?i:(?<![\w-]){_BUS}\b)(?![^\d\n]{{0,24}}(?:ratio|factor|\balg))[^\d\n|]{{0,24}}"
    rf"{_SIZED}{_RANGE}{_NO_OTHER_UNIT}"
)
_BUSBW_AFTER = re.compile(rf"\b{_RANGE}{_UNIT}[^\d\n:;,|]{{0,16}}{_BUS}", re.IGNORECASE)
_PEAK = re.compile(rf"\b(?:peak|max(?:imum)?|best)\b[^\d\n]{{0,24}}{_V}{_UNIT}", re.IGNORECASE)
_AVERAGE = re.compile(rf"\b(?:avg|average|mean)\b[^\d\n]{{0,30}}{_V}", re.IGNORECASE)
_ALGBW = re.compile(rf"\balg[ _-]?(?:bw|bandwidth)\b[^\d\n]{{0,16}}{_V}", re.IGNORECASE)
_PLAIN_AT = re.compile(
    rf"(?:\bat|@|\bfor)[ \t]?\d{{1,5}}[ \t]?[KMG](?:i?B)?[ \t,:=]{{1,4}}(?:(?:is|it)[ \t])?"
    rf"{_RANGE}{_UNIT}"
)
_PLAIN = re.compile(rf"(?<![(\d.]){_RANGE}{_UNIT}(?![ \t](?:in )?total)")
_SIZED_MESSAGE = re.compile(
    r"\b(\d{1,5})[ \t]?(?:([M])i?B\b(?!/)|([KMG])i?B?[ \t](?:messages?|sizes?|buffers?|payload)\b)"
)
_BYTES = re.compile(r"\bsize[ \t:=]{1,4}(\d{4,15})\b(?![.\d])", re.IGNORECASE)
_AT = re.compile(r"(?:\bat|@|,|\bfor|\bof)[ \t]?(\d{1,5})[ \t]?([KMG])(?:i?B)?\b(?![/B])")
_COLLECTIVE = re.compile(
    r"\b(all[ _-]?reduce|all[ _-]?gather|reduce[ _-]?scatter|all[ _-]?(?:to|2)[ _-]?all(?:v)?"
    r"|send[ /_-]{0,3}recv|broadcast)\b",
    re.IGNORECASE,
)
_RING = re.compile(
    r"(?i:\b(?:by|with|using|forced)[ \t]ring\b|\bring[ \t](?:algo|only|allreduce|all_reduce)"
    r"|\b(?:no|without)[ \t]NVLS\b|\bNVLS[ \t:=(]{1,3}(?:is )?(?:off|disabled|not used))|\(ring\)"
)
_SHIFT = {"K": 10, "M": 20, "G": 30}


@dataclass(frozen=True, slots=True)
class Figures:
    """Bandwidths in words, GB/s, with the size (bytes) if one is named."""

    busbw: float | None = None
    peak: float | None = None
    average: float | None = None
    algbw: float | None = None
    size: int | None = None

    @property
    def any(self) -> bool:
        """Whether there is one to judge."""
        return any(v is not None for v in (self.busbw, self.peak, self.algbw))


def learn_prose(setup: Setup, text: str) -> bool:
    """Take what a line says about nodes, GPUs and network cards; whether it said anything."""
    gpus = _gpus(setup, text)
    setup.most_nodes = max(setup.most_nodes, setup.said_nodes or 0)
    if _RING.search(text):
        setup.settings.setdefault("NCCL_ALGO", "Ring")
    cards = _cards(setup, text)
    return gpus or cards


def figures_of(text: str, *, plain: bool) -> Figures:
    """Return the figures that a line gives in words.

    Args:
        text: the line.
        plain: take a bare ``… GB/s`` for bus bandwidth if nothing says which it is.
    """
    peak, average, algbw = _PEAK.search(text), _AVERAGE.search(text), _ALGBW.search(text)
    after = _BUSBW_AFTER.search(text)
    if after is not None and algbw is not None and after.start(1) == algbw.start(1):
        after = None
    busbw = after or _BUSBW.search(text)
    if busbw is None and peak is None and average is None and algbw is None and plain:
        busbw = _PLAIN.search(text)
    if average is not None and (busbw is None or busbw[1] == average[1]):
        busbw = _PLAIN_AT.search(text) or busbw
    if busbw is not None and average is not None and busbw[1] == average[1]:
        busbw = None
    if busbw is not None and peak is not None and busbw[1] == peak[1]:
        busbw = None
    whole = _BYTES.search(text)
    return Figures(
        busbw=_of_range(busbw) if busbw else None,
        peak=float(peak[1]) if peak else None,
        average=float(average[1]) if average else None,
        algbw=float(algbw[1]) if algbw else None,
        size=int(whole[1]) if whole else _size(text),
    )


def _size(text: str) -> int | None:
    """Return the message size that a sentence names; of memory sizes only MB can be one."""
    found = _AT.search(text)
    if found is not None:
        return int(found[1]) << _SHIFT[found[2]]
    named = _SIZED_MESSAGE.search(text)
    return int(named[1]) << _SHIFT[named[2] or named[3]] if named else None


def _of_range(found: re.Match[str]) -> float:
    """Return the better end of "216-231", and what is now of "dropped from 475 to 240"."""
    first, last = float(found[1]), float(found[2] or found[1])
    return max(first, last) if "-" in found[0] and "->" not in found[0] else last


def collective_of(text: str) -> str | None:
    """Return the collective that a line names in prose."""
    found = _COLLECTIVE.search(text)
    if found is None:
        return None
    return COLLECTIVES.get(re.sub(r"[ /_-]", "", found[1].lower()).replace("2", "to"))


def _gpus(setup: Setup, text: str) -> bool:
    found = False
    if model := MODEL.search(text):
        setup.said_model = model[1].upper().replace("-", " ")
        found = True
    if formed := _FORMED.search(text):
        word = formed[2].upper()
        setup.said_form = {"PCIE": "pcie", "NVL": "nvl"}.get(word, "sxm")
    elif _PCIE_BOARD.search(text):
        setup.said_form = "pcie"
    elif _BOARD.search(text) and setup.said_form is None:
        setup.said_form = "sxm"
    if grid := _GRID.search(text):
        setup.said_nodes, setup.said_per_node = _int(grid[1]), _int(grid[2])
        return True
    if of := _NODES_OF.search(text):
        setup.said_nodes = _int(of[1])
        if of[2] is None and _int(of[3]) > 8:
            setup.said_ranks = _int(of[3])  # "2 nodes, 16x H100": all of them
        else:
            setup.said_per_node = _int(of[3])
        return True
    if racks := _RACKS.search(text):
        setup.said_ranks, setup.said_nodes = 72 * _int(racks[1]), 18 * _int(racks[1])
        return True
    if nodes := _NODES.search(text):
        setup.said_nodes = _int(nodes[1])
        found = True
    if per := _PER_NODE.search(text):
        setup.said_per_node = _int(per[1])
        return True
    some = _SOME.search(text)
    if some is not None and (nodes is None or nodes.start() != some.start()):
        _number_of_gpus(setup, _int(some[1]), each=bool(re.search(r"\beach\b", text)))
        return True
    if ranks := _RANKS.search(text):
        setup.said_ranks = _int(ranks[1])
        found = True
    return found


def _number_of_gpus(setup: Setup, number: int, *, each: bool) -> None:
    """Put down "8x H100": the GPUs of a node up to 16, all of them beyond."""
    nodes = setup.said_nodes or 1
    if number > 16 or (nodes > 1 and not each and number > 8):
        setup.said_ranks = number
    else:
        setup.said_per_node = number


def _cards(setup: Setup, text: str) -> bool:
    nics = setup.nics
    if _ROCE.search(text):
        nics.roce = True
    elif nics.roce is None and _IB.search(text):
        nics.roce = False
    if total := _TOTAL.search(text):
        nics.total_gbs = float(total[1])
    if rated := _CARDS_RATED.search(text):
        nics.count, nics.gbit = _int(rated[1]), float(rated[3] or rated[4])
        return True
    if rated := _RATED_CARDS.search(text):
        nics.count, nics.gbit = _int(rated[3]), float(rated[1] or rated[2])
        return True
    if named := _CARDS_NAMED.search(text):
        nics.count = _int(named[1])
        nics.gbit = float(named[3] or _GBIT[named[2].upper()])
        return True
    cards = _CARDS.search(text)
    rate, standard = _RATED.search(text), _STANDARD_ALONE.search(text)
    # "One NIC of node 2 was down" is no count of them.
    if cards and (rate or standard or nics.count is None):
        nics.count = _int(cards[1])
    if rate:
        nics.gbit = float(rate[2] or rate[3])
    elif standard:
        nics.gbit = float(standard[2] or _GBIT[standard[1].upper()])
    return bool(cards or rate or standard or total)


def _int(word: str) -> int:
    return _WORDS.get(word.lower()) or min(int(word), 99_999) if word else 0
