"""Learn what a run was from the lines that nccl-tests prints about itself, and from commands.

Lines: NVIDIA/nccl-tests 2.19.6 src/util.cu (``writeDeviceReport``), ROCm/rccl-tests src/common.cu.
"""

from __future__ import annotations

import re

from engine.readers.nccl_tests.setup import Setup

BINARY = re.compile(
    r"\b(all_reduce|all_gather|reduce_scatter|alltoallv|alltoall|broadcast|reduce|sendrecv"
    r"|hypercube|gather|scatter)_perf(?:_mpi)?\b"
)
_DEVICE = re.compile(
    r"\bRank[ \t]{1,8}(\d{1,6})[ \t]{1,8}(?:Group[ \t]{1,8}\d{1,6}[ \t]{1,8})?Pid[ \t]{1,8}"
    r"(\d{1,10})[ \t]on[ \t]{1,80}(?:([^\s\[]{1,255})[ \t]{1,8})?device[ \t]{1,8}\d{1,4}"
    r"[ \t]\[[0-9a-fA-FxX:.]{1,24}\][ \t]{1,4}([^\n]{1,120})"
)
_ABOUT = re.compile(r"\bnThread (\d{1,4}) nGpus (\d{1,4}) minBytes (\d{1,20}) maxBytes (\d{1,20})")
_VERSION = re.compile(r"\b(nccl|rccl)-tests:? [vV]ersion\b")
_STARTING = re.compile(r"\bCollective test (starting|concluded): (\S{1,255})")
_LAUNCHER = re.compile(r"\b(mpirun|mpiexec(?:\.\w{1,12})?|orterun|srun|prun)\b")
_SETTING = re.compile(
    r"\b(NCCL_[A-Z0-9_]{2,60})(?:=| set by environment to )[\"']?([^\s\"';]{1,200})"
)
_STAGED = re.compile(rb"\bvia NET/IB/\d{1,3}(?:\(\d{1,6}\))?(?![\d(]|/GDRDMA)")
_OVER_IB, _DIRECT = b"via NET/IB/", b"/GDRDMA"
_BACKEND = re.compile(r"\bUsing network (\w{1,32})")
_SIZE = re.compile(r"^(\d{1,15}(?:\.\d{1,6})?)([kKmMgGtT]?)(?:i?[bB])?$", re.ASCII)
_SCALE = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_SHORT = {"-np", "-n", "--n", "-c", "--np"}
_MAX_WORDS = 256


def learn_own_line(setup: Setup, text: str) -> bool:
    """Take a line that the test prints about itself."""
    if device := _DEVICE.search(text):
        name = device[4].strip()
        setup.list_device(int(device[1]), device[2], device[3] or "", name)
        setup.rccl |= "AMD" in name
        return True
    if about := _ABOUT.search(text):
        setup.headers += 1
        setup.per_process = int(about[1]) * int(about[2])
        setup.min_bytes, setup.max_bytes = int(about[3]), int(about[4])
        return True
    if named := _STARTING.search(text):
        if (binary := BINARY.search(named[2])) and setup.collective is None:
            setup.collective = binary[1]
        return True
    if version := _VERSION.search(text):
        setup.rccl |= version[1] == "rccl"
        return True
    return False


def lists_device(text: str) -> bool:
    """Whether a line is one of the list of GPUs."""
    return "device" in text and _DEVICE.search(text) is not None


def learn_paths(setup: Setup, block: bytes) -> None:
    """Take what the channel lines of a block of NCCL's log say about the path between nodes."""
    setup.socket = setup.socket or b"via NET/Socket/" in block
    # Counting is ten times as fast as the expression, and mostly says that all lines are the same.
    if not setup.staged and block.count(_OVER_IB) != block.count(_DIRECT):
        setup.staged = _STAGED.search(block) is not None


def starts_run(text: str) -> bool:
    """Whether a line is the first that a test prints."""
    if (named := _STARTING.search(text)) is not None:
        return named[1] == "starting"
    return _ABOUT.search(text) is not None or _VERSION.search(text) is not None


def concludes(text: str) -> bool:
    """Whether a line is the last that a test prints."""
    named = _STARTING.search(text)
    return named is not None and named[1] == "concluded"


def learn_settings(setup: Setup, text: str) -> bool:
    """Take ``NCCL_X=value`` and NCCL's "NCCL_X set by environment to value", "Using network X"."""
    found = False
    if backend := _BACKEND.search(text):
        setup.backend = backend[1]
    for name, value in _SETTING.findall(text):
        if len(setup.settings) < 64 or name in setup.settings:
            setup.settings[name] = value.rstrip(".,:")
            found = True
    return found


def learn_command(setup: Setup, text: str) -> bool:
    """Take a command line with one of the binaries in it."""
    binary = BINARY.search(text)
    if binary is None:
        return False
    setup.collective = binary[1]
    learn_settings(setup, text)
    before, after = text[: binary.start()].split(), text[binary.end() :].split()
    if _LAUNCHER.search(text[: binary.start()]):
        _launcher(setup, before[-_MAX_WORDS:])
    _options(setup, after[:_MAX_WORDS])
    return True


def size_bytes(word: str) -> int | None:
    """Return what a size as of ``-b`` is in bytes: ``8``, ``256M``, ``8G``."""
    found = _SIZE.match(word)
    if found is None:
        return None
    return int(float(found[1]) * (1 << _SCALE[found[2].lower()]))


def _launcher(setup: Setup, words: list[str]) -> None:
    slurm = "srun" in words
    ranks = nodes = per_node = None
    for at, word in enumerate(words):
        name, _, value = word.partition("=")
        value = value or (words[at + 1] if at + 1 < len(words) else "")
        count = _count(value)
        if name in _SHORT or (slurm and name == "--ntasks"):
            ranks = count or ranks
        elif slurm and name in {"-N", "--nodes"}:
            nodes = count or nodes
        elif name in {"--ntasks-per-node", "-npernode", "--npernode", "-ppn", "--ppn"}:
            per_node = count or per_node
        elif slurm and word.startswith("-n") and word[2:].isascii() and word[2:].isdigit():
            ranks = _count(word[2:])
        elif name in {"-H", "--host", "-host", "--hosts", "-hosts"} and value:
            hosts = {h.partition(":")[0] for h in value.split(",")[:4096] if h}
            nodes = len(hosts) or nodes
        elif "ppr:" in word:
            per_node = _count(word.partition("ppr:")[2].partition(":")[0]) or per_node
    if ranks is None and nodes and per_node:
        ranks = nodes * per_node
    if nodes is None and ranks and per_node and ranks % per_node == 0:
        nodes = ranks // per_node
    setup.processes = ranks or setup.processes
    if nodes:
        setup.said_nodes = nodes


def _options(setup: Setup, words: list[str]) -> None:
    gpus = threads = None
    for at, word in enumerate(words):
        name, _, value = word.partition("=")
        value = value or (words[at + 1] if at + 1 < len(words) else "")
        if name in {"-g", "--ngpus"}:
            gpus = _count(value)
        elif name in {"-t", "--nthreads"}:
            threads = _count(value)
        elif name in {"-b", "--minbytes"}:
            setup.min_bytes = size_bytes(value) or setup.min_bytes
        elif name in {"-e", "--maxbytes"}:
            setup.max_bytes = size_bytes(value) or setup.max_bytes
    if gpus or threads:
        setup.per_process = (gpus or 1) * (threads or 1)


def _count(word: str) -> int | None:
    ok = word.isascii() and word.isdigit() and len(word) <= 6
    return int(word) or None if ok else None
