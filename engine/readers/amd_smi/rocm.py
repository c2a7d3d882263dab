"""``rocm-smi``: the concise table of old and new versions, key lines, RAS and page tables.

In maintenance since ROCm 7.0, and still what people paste. Key names are the same in its text, CSV
and JSON. Source: ROCm/rocm-systems projects/rocm-smi-lib python_smi_tools/rocm_smi.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from engine.readers.amd_smi.fields import put
from engine.readers.amd_smi.state import AmdGpu
from engine.readers.amd_smi.values import reading

# Key as printed, in lower case: path.
KEYS: Final = {
    "temperature (sensor edge) (c)": "temperature.edge",
    "temperature (sensor junction) (c)": "temperature.hotspot",
    "temperature (sensor memory) (c)": "temperature.mem",
    "average graphics package power (w)": "power.socket_power",
    "current socket graphics package power (w)": "power.socket_power",
    "max graphics package power (w)": "power.power_limit",
    "gpu use (%)": "usage.gfx_activity",
    "gpu memory read/write activity (%)": "usage.umc_activity",
    "fan speed (%)": "fan.usage",
    "pcie replay count": "pcie.replay_count",
    "performance level": "perf_level",
    "xgmi error count": "xgmi_err",
    "card series": "asic.market_name",
    "device name": "asic.market_name",
    "pci bus": "bdf",
    "compute partition": "partition.compute_partition",
    "memory partition": "partition.memory_partition",
    "driver version": "driver.version",
}
_BYTES: Final = {
    "vram total memory (b)": "mem_usage.total_vram",
    "vram total used memory (b)": "mem_usage.used_vram",
}
_CLOCK_KEY: Final = re.compile(r"^(?P<which>[sm])clk clock (?:level|speed):?(?: ?\d{1,3}:?)?$")
_MHZ: Final = re.compile(r"\(?(?P<mhz>[0-9]{1,5})Mhz\)?", re.IGNORECASE)
_CLOCKS: Final = {"s": "clock.gfx_0.clk", "m": "clock.mem_0.clk"}


def put_key(gpu: AmdGpu, key: str, value: object) -> bool:
    """Store what stands behind one of the tool's keys; return whether the key is known."""
    name = " ".join(key.lower().split())
    path = KEYS.get(name)
    if path is not None:
        return put(gpu, path, _xgmi(value) if path == "xgmi_err" else value)
    if name in _BYTES:
        size = reading(value)
        return size is not None and put(gpu, _BYTES[name], size / 1024 / 1024)
    clock = _CLOCK_KEY.match(name)
    mhz = _MHZ.search(value[:64]) if clock and isinstance(value, str) else None
    return bool(clock and mhz and put(gpu, _CLOCKS[clock["which"]], float(mhz["mhz"])))


def _xgmi(value: object) -> object:
    """The count of XGMI errors as the words of amd-smi."""
    count = reading(str(value).split(" ", 1)[0])
    return value if count is None else ("ERROR" if count else "NO_ERRORS")


_SPACER: Final = re.compile(r"^\s{0,12}[=_-]{8,}")
_TITLES: Final = ("ROCm System Management Interface", "Concise Info")
_HEADING: Final = re.compile(
    r"^\s{0,40}(?:GPU\s{1,8}Temp\b|Device\s{1,8}(?:Node|\[Model)|\(DID,|GPU\s{1,8}DID\s)"
)
_ROW: Final = re.compile(r"^\s{0,12}(?P<gpu>\d{1,4})\s{1,12}(?P<rest>\S.{8,240})$")
_SENSOR: Final = re.compile(r"\((?:Die)?(?P<sensor>Edge|Junction|Hotspot)\)", re.IGNORECASE)
_TEMPERATURE: Final = re.compile(r"(?<!\S)(?P<c>-?\d{1,3}(?:\.\d{1,3})?)[°_]?[cC](?!\S)")
_WATTS: Final = re.compile(r"(?<!\S)(?P<w>\d{1,5}(?:\.\d{1,3})?)W(?!\S)")
_LEVELS: Final = re.compile(r"(?<!\S)(auto|low|high|manual|determinism|perf_determinism)(?!\S)")
_PERCENT: Final = re.compile(r"^\d{1,3}(?:\.\d{1,2})?%$")


class RocmTableForm:
    """Reads the concise table; its columns differ by version, their cells tell what they are."""

    def __init__(self, emit: Callable[[AmdGpu], None], host: str | None) -> None:
        self._emit = emit
        self._host = host
        self._sensor = "edge"

    def starts(self, number: int, text: str) -> bool:
        """Return whether a line is the tool's title or the table's heading."""
        del number
        if any(title in text for title in _TITLES) or _HEADING.match(text):
            self._look(text)
            return True
        return False

    def take(self, number: int, text: str) -> bool:
        """Take a line of the table."""
        if self.starts(number, text):
            return True
        row = _ROW.match(text)
        if row is None:
            return bool(_SPACER.match(text)) or "(DID," in text or "End of ROCm SMI Log" in text
        rest = row["rest"]
        watts = [m["w"] for m in _WATTS.finditer(rest)]
        mhz = [m["mhz"] for m in _MHZ.finditer(rest)]
        temperature = _TEMPERATURE.search(rest)
        tokens = rest.split()
        if not (watts or mhz or temperature or "N/A" in tokens or tokens[-1].endswith("%")):
            return False
        gpu = AmdGpu(number, int(row["gpu"]), self._host)
        put(gpu, f"temperature.{self._sensor}", temperature["c"] if temperature else "N/A")
        power, cap = (watts[0], watts[-1]) if len(watts) > 1 else self._one(rest, watts)
        put(gpu, "power.socket_power", power)
        if cap:
            put(gpu, "power.power_limit", cap)
        put(gpu, "clock.gfx_0.clk", mhz[0] if mhz else "N/A")
        if len(mhz) > 1:
            put(gpu, "clock.mem_0.clk", mhz[1])
        level = _LEVELS.search(rest)
        if level:
            put(gpu, "perf_level", level[1])
        put(gpu, "usage.gfx_activity", tokens[-1] if _PERCENT.match(tokens[-1]) else "N/A")
        if len(tokens) > 1 and _PERCENT.match(tokens[-2]):
            gpu.numbers["vram_percent"] = float(tokens[-2].rstrip("%"))
        self._emit(gpu)
        return True

    @staticmethod
    def _one(rest: str, watts: list[str]) -> tuple[str, str | None]:
        """A single power: the draw if it stands before the clocks, else the cap."""
        if not watts:
            return "N/A", None
        mhz = rest.lower().find("mhz")
        drawn = mhz < 0 or rest.find(f"{watts[0]}W") < mhz
        return (watts[0], None) if drawn else ("N/A", watts[0])

    def _look(self, text: str) -> None:
        found = _SENSOR.search(text)
        if found is not None:
            self._sensor = "edge" if found["sensor"].lower() == "edge" else "hotspot"
        elif "Concise Info" in text:
            self._sensor = "edge"


_LINE: Final = re.compile(
    r"^\s{0,12}GPU\[(?P<gpu>\d{1,4})\](?: XCP\[\d{1,2}\])?\s{0,16}: {1,4}(?P<key>[^:]{2,80}?)"
    r"(?::+ {0,4}(?:(?P<level>\d{1,3}): )?\s{0,8}(?P<value>.{0,120}))?$"
)
_TABLE: Final = re.compile(
    r"^\s{0,12}GPU\[(?P<gpu>\d{1,4})\]: \s{0,16}(?P<what>RAS INFO|(?:[A-Z]{2,16} )?PAGES INFO)\s*$"
)
_RAS: Final = re.compile(
    r"^\s{1,24}(?P<block>[A-Z][A-Z0-9_]{1,15})\s{1,24}(?P<state>[A-Z]{2,16}(?: [A-Z]{2,16})?)"
    r"\s{1,32}(?P<correctable>\d{1,18})\s{1,40}(?P<uncorrectable>\d{1,18})\s*$"
)
_PAGE: Final = re.compile(
    r"^\s{0,24}0x[0-9a-fA-F]{1,16}\s{1,24}0x[0-9a-fA-F]{1,8}\s{1,24}(\w+)\s*$"
)
_PAGE_KINDS: Final = {"reserved": "retired", "pending": "pending", "unreservable": "un_res"}


class RocmLinesForm:
    """Reads ``GPU[0] : Key: value`` lines, and the RAS and page tables under them."""

    def __init__(self, emit: Callable[[AmdGpu], None], host: str | None) -> None:
        self._emit = emit
        self._host = host
        self._gpu: AmdGpu | None = None

    def starts(self, number: int, text: str) -> bool:
        """Return whether a line is of this form."""
        found = _TABLE.match(text) or _LINE.match(text)
        if found is None:
            return False
        gpu = self._of(number, int(found["gpu"]))
        groups = found.groupdict()
        if groups.get("key") and groups.get("value") is not None:
            put_key(gpu, found["key"], found["value"].strip())
        return True

    def take(self, number: int, text: str) -> bool:
        """Take a line."""
        if self.starts(number, text):
            return True
        gpu = self._gpu
        ras = _RAS.match(text)
        if ras is not None and gpu is not None:
            for what in ("correctable", "uncorrectable"):
                put(gpu, f"ecc_blocks.{ras['block'].lower()}.{what}_count", ras[what])
            return True
        page = _PAGE.match(text)
        if page is not None and gpu is not None:
            kind = _PAGE_KINDS.get(page[1].lower())
            return kind is not None and put(gpu, f"{kind}.page_address", text)
        return bool(_SPACER.match(text)) or "Correctable Error" in text or "Page address" in text

    def _of(self, number: int, index: int) -> AmdGpu:
        if self._gpu is None or self._gpu.index != index:
            self._gpu = AmdGpu(number, index, self._host)
            self._emit(self._gpu)
        return self._gpu
