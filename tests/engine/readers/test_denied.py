"""Words of an event in a sentence that denies it, or in a command: nothing happened."""

from __future__ import annotations

import pytest

from engine.catalogue import Catalogue
from engine.readers import read

XID = "NVRM: Xid (PCI:0000:3b:00): 79"
LOST = "NVRM: GPU at 0000:3b:00.0 has fallen off the bus"
SXID = "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32"
EVENTS = {"xid", "sxid", "gpu_error"}


def _found(line: str, catalogue: Catalogue) -> list[str]:
    return [f.id for f in read(f"{line}\n".encode(), catalogue).findings if f.kind in EVENTS]


@pytest.mark.parametrize(
    "line",
    [
        f"no {XID} was found",
        f"There is no {XID} in dmesg",
        f"{XID} was not found",
        f"did not find any {XID} in dmesg",
        f"the job ended without an {XID}",
        f"we never saw {XID}",
        f"no {LOST} was found",
        f"no {SXID} was logged",
        f'echo "{XID}, test" > /dev/kmsg',
        f"$ echo {XID}, test >/dev/kmsg",
        f"sudo logger -p kern.err '{XID}, pid=1'",
        f'printf "<3>{XID}, x\\n" | sudo tee /dev/kmsg',
        f"dmesg | grep '{XID}'",
        "iter 79: CUDA out of memory avoided",
        "this prevents CUDA out of memory",
        "there was no CUDA out of memory",
        "in case of CUDA out of memory lower the batch size",
        "CUDA out of memory errors were fixed by a smaller batch",
    ],
)
def test_what_did_not_happen_is_no_event(line: str, catalogue: Catalogue) -> None:
    assert _found(line, catalogue) == []


@pytest.mark.parametrize(
    ("line", "id_"),
    [
        (f"{XID}, pid=1, GPU has fallen off the bus.", "79"),
        (f"my GPU does not start {XID}, GPU has fallen off the bus.", "79"),
        (f"$ dmesg | grep Xid [12.3] {XID}, pid=1", "79"),
        (f"Nov 30 01:00:00 no kernel: {XID}, pid=1, x", "79"),
        (f"Nov 30 01:00:00 node1 logger: {XID}, pid=1", "79"),
        (f"journal: no more memory. {XID}, pid=1", "79"),
        (LOST, "79"),
        (SXID, "12028"),
        ("torch.OutOfMemoryError: CUDA out of memory.", "out_of_memory"),
        ("no luck, I got CUDA out of memory again", "out_of_memory"),
        ("if CUDA out of memory. Tried to allocate 2.00 GiB", "out_of_memory"),
    ],
)
def test_what_happened_is_one_whatever_stands_around_it(
    line: str, id_: str, catalogue: Catalogue
) -> None:
    assert _found(line, catalogue) == [id_]
