"""An NFS mount whose requests stop: it hangs, its work ended, or nobody can tell."""

from __future__ import annotations

import pytest

from engine.model import Confidence, Verdict, Why
from engine.samples import RawSeries
from tests.support.memory import MemorySource
from tests.support.readings import AT, FULL, causes, engine, incidents, node, series

GOES_ON = [12_000 * k for k in range(16)]
STOPS = [12_000 * min(k, 8) for k in range(16)]
# Requests that were under way when the server fell silent, and those sent again after a minute.
OWED = [n + (64 if k > 8 else 0) for k, n in enumerate(STOPS)]
RESENT = [n + (64 + 8 * (k - 9) if k > 8 else 0) for k, n in enumerate(STOPS)]


def mount(
    host: str, done: list[int], sent: list[int] | None = None, *, transport: bool = True
) -> list[RawSeries]:
    """Return what node_exporter says of an NFS mount of a host."""
    here = {"instance": f"{host}:9100"}
    own = {**here, "export": "filer:/data", "mountaddr": "10.0.0.9", "protocol": "tcp"}
    fs = {**here, "device": "filer:/data", "mountpoint": "/mnt/data", "fstype": "nfs4"}
    of_read, of_transport = {**own, "operation": "READ"}, {**own, "transport": "0"}
    out = [
        series("node_filesystem_avail_bytes", 5e11, fs),
        series("node_filesystem_size_bytes", 1e12, fs),
        series("node_filesystem_device_error", 0, fs),
        series("node_uname_info", 1, {**here, "nodename": host}),
        series("node_mountstats_nfs_operations_requests_total", done, of_read),
        series("node_mountstats_nfs_operations_transmissions_total", done, of_read),
    ]
    if transport:
        out += [
            series("node_mountstats_nfs_transport_sends_total", sent or done, of_transport),
            series("node_mountstats_nfs_transport_receives_total", done, of_transport),
        ]
    return out


def hosts(second: list[RawSeries]) -> list[RawSeries]:
    gpus = [s for host in ("node-1", "node-2") for s in node(FULL, host=host, gpus=2)]
    return [*gpus, *mount("node-1", GOES_ON), *second]


async def ask(second: list[RawSeries], target: str = "fs/mnt/data") -> Why:
    return await engine().why(target, MemorySource(hosts(second)), at=AT)


@pytest.mark.parametrize("sent", [OWED, RESENT])
async def test_requests_without_replies_are_no_health(sent):
    found = await ask(mount("node-2", STOPS, sent))
    assert causes(found) == ["storage_slow"]
    assert found.diagnoses[0].confidence is Confidence.LIKELY
    assert found.diagnoses[0].entity.host == "node-2"
    swept = await engine().sweep(MemorySource(hosts(mount("node-2", STOPS, sent))), at=AT)
    assert ("storage_slow", "fs/mnt/data") in incidents(swept)


async def test_work_that_ended_on_one_host_is_no_fault():
    assert (await ask(mount("node-2", STOPS))).verdict is Verdict.HEALTHY


async def test_whether_it_hangs_is_unknown_where_only_what_was_done_is_counted():
    found = await ask(mount("node-2", STOPS, transport=False))
    assert found.verdict is Verdict.UNKNOWN
    (lack,) = (u for u in found.unknown if "nfs_received" in u.needs and "nfs_sent" in u.needs)
    assert "stopped on node-2 while other hosts go on" in lack.why
    assert "storage_slow" in lack.blocks


async def test_a_mount_that_is_used_is_healthy_without_the_counts_of_its_connection():
    assert (await ask(mount("node-2", GOES_ON, transport=False))).verdict is Verdict.HEALTHY
