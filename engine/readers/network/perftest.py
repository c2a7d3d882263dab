"""Reader of perftest: ``ib_write_bw``, ``ib_read_bw``, ``ib_send_bw`` and their latency kin.

Source: linux-rdma/perftest src/perftest_resources.c and perftest_parameters.c. The table prints the
device, not its rate, so a figure is held against the rates that it could be of.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from engine.model import Finding, Severity
from engine.readers.base import Result
from engine.readers.listing import Listing, at, finding, node, result_of
from engine.readers.quantities import decimal, integer, short
from engine.units import number

_TEST: Final = re.compile(
    r"^\s{4,40}((?:RDMA_)?(?:Write|Read|Send|Atomic)(?:_[A-Z]+)? (?:Bidirectional )?(?:BW|"
    r"Post List BW|Latency) Test)\s*$"
)
_BW: Final = re.compile(
    r"^\s{0,4}#bytes\s{1,12}#iterations\s{1,12}BW peak\[(MB|MiB|Gb)/sec\]\s{1,12}BW average\["
    r"(?:MB|MiB|Gb)/sec\]\s{1,12}MsgRate"
)
_LAT: Final = re.compile(r"^\s{0,4}#bytes\s{1,12}#iterations\s{1,12}t_(?:min|avg)\[usec\]")
# Cells of a row: four of a bandwidth test by time, up to eleven with two ports.
_ROW_CELLS: Final = (3, 12)
_PAIR: Final = re.compile(r"([A-Z][A-Za-z .]{1,20}?)\s{0,12}: (\S{1,40})")
_USE_CUDA: Final = re.compile(
    r"(?:initializing CUDA|Using GPU|cuda_dev|--use_cuda|allocating GPU buffer)", re.IGNORECASE
)
_FAILED: Final = (
    (r"Failed status [0-9]{1,3}: wr_id ", "completion_error", "rdma_unreachable"),
    (r"Completion with error at (?:client|server)", "completion_error", "rdma_unreachable"),
    (r"Failed to modify QP", "qp_not_connected", "rdma_unreachable"),
    (r"Unable to Connect the HCA's through the link", "qp_not_connected", "rdma_unreachable"),
    (r"Couldn't connect to [\w.:-]{1,253}:[0-9]{1,5}\s*$", "no_connection", None),
    (r"Unable to open file descriptor for socket connection", "no_connection", None),
    (r"Couldn't allocate MR", "no_memory_region", None),
    (r"IB device [\w.-]{0,63} ?not found", "no_device", None),
    (r"Port number [0-9]{1,3} state is Down", "port_down", "ib_link_down"),
)
_FAILURES: Final = tuple(
    (re.compile(r"^\s{0,4}" + words), id_, cause) for words, id_, cause in _FAILED
)
_MEANS: Final = {
    "completion_error": (
        (
            "a message was not acknowledged: the peer is not reached over RDMA (GID index, VLAN, "
            "routing, firewall of RoCE, lost link)"
        ),
        "Check GID index (show_gids) and traffic class on both hosts, then the path's counters.",
    ),
    "qp_not_connected": (
        (
            "the queue pair could not be connected: wrong GID index, different MTU, or no route "
            "to the peer's GID"
        ),
        "Use the index of a RoCE v2 entry with the fabric's IPv4 address on both sides (-x INDEX).",
    ),
    "no_connection": (
        (
            "the TCP connection by which both sides exchange addresses failed: no server running "
            "there, a firewall, or a wrong address"
        ),
        "Start the test without an address on the other host first; check that port 18515 is open.",
    ),
    "no_memory_region": (
        (
            "memory could not be registered with the NIC: locked-memory limit, or no GPU peer "
            "memory with --use_cuda"
        ),
        "ulimit -l must say unlimited; with --use_cuda check lsmod | grep peermem.",
    ),
    "no_device": (
        "the RDMA device was not found on this host",
        "List the devices: ibv_devinfo -l.",
    ),
    "port_down": (
        "the port of the device is down",
        "ibstat shows its state; check cable and switch.",
    ),
}
# Line rate in Gb/s: from what the cloud health checks let a host pass (facts of the fabric tests).
_PASS: Final = (
    (800.0, 760.0),
    (400.0, 380.0),
    (200.0, 180.0),
    (100.0, 92.0),
    (50.0, 46.0),
    (25.0, 23.0),
)


@dataclass(slots=True)
class Test:
    """One table. ``rows`` are message bytes and the figures of the row."""

    line: int
    host: str | None
    name: str = "RDMA test"
    unit: str = ""
    device: str | None = None
    layer: str | None = None
    mtu: int | None = None
    gid_index: int | None = None
    cuda: bool = False
    rows: list[tuple[int, list[float]]] = field(default_factory=list)
    failure: tuple[str, str | None, int] | None = None

    MAX_ROWS = 256


class PerftestReader(Listing[Test]):
    """Reads header, table and the errors that take the table's place."""

    triggers: ClassVar[tuple[bytes, ...]] = (
        b" BW Test",
        b" Latency Test",
        b"#iterations ",
        b"Completion with error at ",
        b"Failed to modify QP",
        b"Unable to Connect the HCA",
        b"Unable to open file descriptor for socket",
        b"Couldn't allocate MR",
    )
    pattern: ClassVar[bytes] = (
        rb"Failed status [0-9]+: wr_id|Couldn't connect to \S+:[0-9]+\s|"
        rb"IB device \S* ?not found|Port number [0-9]+ state is Down"
    )
    PATIENCE = 12

    _test: Test | None = None

    def take(self, number: int, text: str) -> bool:
        """Take a line of a test."""
        name = _TEST.match(text)
        if name:
            self._begin(number).name = name[1]
            return True
        bandwidth = _BW.match(text)
        if bandwidth or _LAT.match(text):
            test = (
                self._test
                if self._test is not None and not self._test.rows
                else self._begin(number)
            )
            test.unit = bandwidth[1] if bandwidth else "us"
            return True
        for words, id_, cause in _FAILURES:
            if words.match(text):
                test = self._test or self._begin(number)
                test.failure = test.failure or (id_, cause, number)
                return True
        return self.inside and self._test is not None and self._inside(self._test, text)

    def end(self) -> None:
        """Start afresh with the next test."""
        self._test = None

    def judge(self, records: Sequence[Test]) -> Result:
        """Say what each test shows."""
        return result_of(["perftest"], [f for test in records for f in _judged(test)])

    def _begin(self, number: int) -> Test:
        self._test = Test(number, self.host)
        self.kept.add(self._test)
        self.inside = True
        return self._test

    @staticmethod
    def _inside(test: Test, text: str) -> bool:
        if _USE_CUDA.search(text[:200]):
            test.cuda = True
            return True
        cells = text.split()
        values = [decimal(cell) for cell in cells[:12]]
        size = integer(cells[0]) if cells else None
        if (
            test.unit
            and size
            and _ROW_CELLS[0] <= len(cells) <= _ROW_CELLS[1]
            and all(v is not None for v in values)
        ):
            if len(test.rows) < test.MAX_ROWS:
                test.rows.append((size, [v for v in values[1:] if v is not None]))
            return True
        pairs = _PAIR.findall(text[:300])
        for key, value in pairs:
            key = key.strip()  # noqa: PLW2901 - the same name without its padding
            if key == "Device":
                test.device = short(value, 40)
            elif key == "Link type":
                test.layer = {"IB": "InfiniBand"}.get(value, short(value, 16))
            elif key == "Mtu":
                test.mtu = integer(value.removesuffix("[B]"))
            elif key == "GID index":
                test.gid_index = integer(value)
        return bool(pairs) or set(text.strip()) == {"-"} or "address" in text


def _judged(test: Test) -> Iterable[Finding]:
    data: dict[str, object] = {
        "device": test.device,
        "test": test.name,
        "link_type": test.layer,
        "mtu_bytes": test.mtu,
        "gid_index": test.gid_index,
        "gpu_memory": test.cuda or None,
    }
    subject = f"{at(test.host)}{test.name}" + (f" on {test.device}" if test.device else "")
    if test.failure:
        id_, cause, line = test.failure
        means, action = _MEANS[id_]
        yield finding(
            "perftest",
            id_,
            Severity.HIGH if cause else Severity.MEDIUM,
            f"{subject} failed: {means}.",
            action,
            line=line,
            cause=cause,
            data=data,
            entity=node(test.host),
            sources=("linux-rdma/perftest src/perftest_resources.c",),
        )
    elif test.unit == "us" and test.rows:
        yield _latency(test, subject, data)
    elif test.unit and test.rows:
        yield _bandwidth(test, subject, data)


def _bandwidth(test: Test, subject: str, data: dict[str, object]) -> Finding:
    size, values = max(
        test.rows, key=lambda row: (row[1][2] if len(row[1]) > 2 else row[1][-1]) * 0 + row[0]
    )
    # Columns: iterations, peak, average, message rate; peak is 0 in tests by time.
    average = values[2] if len(values) > 2 else values[-1]
    # "MB" of perftest is 2^20 bytes.
    gbps = average if test.unit == "Gb" else average * 1_048_576 * 8 / 1e9
    both = "Bidirectional" in test.name
    rate = gbps / 2 if both else gbps
    above = [(line, ok) for line, ok in _PASS if rate <= line * 1.01]
    line_rate, ok = min(above) if above else (0.0, 0.0)
    fits = bool(above) and rate >= ok
    verdict = (
        f" That is what a {number(line_rate)} Gb/s port delivers ({number(ok)} or more)."
        if fits
        else f" A {number(line_rate)} Gb/s port should reach {number(ok)} Gb/s or more; which rate "
        "this port has, the test does not print."
        if above
        else ""
    )
    small = (
        f" The largest message was only {size:,} bytes: too small to fill a link."
        if size < 65_536
        else ""
    )
    return finding(
        "perftest",
        "bandwidth",
        Severity.INFO if fits or small else Severity.LOW,
        f"{subject}: {number(round(gbps, 2))} Gb/s ({number(round(gbps / 8, 2))} GB/s) on average "
        f"at {size:,} bytes"
        + (", both directions together" if both else "")
        + "."
        + (small or verdict),
        "Compare with the port's rate (ibstat) and with the same test between other pairs of "
        "hosts; below the pass mark look at PCIe width of NIC and slot, NUMA binding, and "
        "counters.",
        line=test.line,
        data=data
        | {
            "message_bytes": size,
            "average_gbps": round(gbps, 3),
            "average_gbs": round(gbps / 8, 3),
            "fits_line_rate_gbps": line_rate if fits else None,
        },
        entity=node(test.host),
        sources=(
            "linux-rdma/perftest README",
            "Azure/azurehpc-health-checks (pass marks for 200 and 400 Gb/s)",
        ),
    )


def _latency(test: Test, subject: str, data: dict[str, object]) -> Finding:
    size, values = test.rows[0]
    # Columns: iterations, min, max, typical, average, deviation, 99 %, 99.9 %.
    named = dict(
        zip(
            ("min_us", "max_us", "typical_us", "average_us", "stdev_us", "p99_us", "p999_us"),
            values[1:],
            strict=False,
        )
    )
    typical, tail = named.get("typical_us", values[1]), named.get("p99_us")
    long = tail is not None and typical > 0 and tail > 5 * typical
    return finding(
        "perftest",
        "latency",
        Severity.LOW if long else Severity.INFO,
        f"{subject}: {number(typical)} µs typical at {size:,} bytes"
        + (f", 99 % within {number(tail)} µs" if tail is not None else "")
        + (
            ": the tail is far from the typical value, as congestion, retries or a busy CPU "
            "make it."
            if long
            else "."
        ),
        "Compare with another pair of hosts at the same distance; with a long tail look at "
        "retransmission counters (rdma statistic) and CPU power states.",
        line=test.line,
        data=data | {"message_bytes": size} | named,
        entity=node(test.host),
        sources=("linux-rdma/perftest README",),
    )
