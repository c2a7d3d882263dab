"""One state of a GPU in every form in which ``nvidia-smi`` prints it gives one answer."""

from __future__ import annotations

import pytest

from engine.catalogue import Catalogue
from engine.readers import read
from tests.support.readings import judge

PENDING = {
    "listing": """\
GPU 00000000:3B:00.0
    Remapped Rows
        Correctable Error                 : 0
        Uncorrectable Error               : 1
        Pending                           : Yes
        Remapping Failure Occurred        : No
""",
    "listing without its indentation": """\
GPU 00000000:3B:00.0
Remapped Rows
Correctable Error : 0
Uncorrectable Error : 1
Pending : Yes
Remapping Failure Occurred : No
""",
    "xml": """\
<nvidia_smi_log>
<gpu id="00000000:3B:00.0">
<remapped_rows>
<remapped_row_corr>0</remapped_row_corr>
<remapped_row_unc>1</remapped_row_unc>
<remapped_row_pending>Yes</remapped_row_pending>
<remapped_row_failure>No</remapped_row_failure>
</remapped_rows>
</gpu>
</nvidia_smi_log>
""",
    "xml on one line": (
        '<nvidia_smi_log><gpu id="00000000:3B:00.0"><remapped_rows><remapped_row_unc>1'
        "</remapped_row_unc><remapped_row_pending>Yes</remapped_row_pending></remapped_rows></gpu>"
        "</nvidia_smi_log>\n"
    ),
    "csv": """\
pci.bus_id, remapped_rows.correctable, remapped_rows.uncorrectable, remapped_rows.pending
00000000:3B:00.0, 0, 1, Yes
""",
    "csv of remapped rows": """\
gpu_bus_id, remapped_rows.correctable, remapped_rows.uncorrectable, remapped_rows.pending
00000000:3B:00.0, 0, 1, 1
""",
}


@pytest.mark.parametrize("text", PENDING.values(), ids=PENDING)
@pytest.mark.parametrize("host", ["", "node-3: "], ids=["alone", "of a host"])
def test_a_pending_remap_is_found_in_every_form(text: str, host: str, catalogue: Catalogue) -> None:
    lines = "".join(f"{host}{line}\n" for line in text.splitlines())
    answer = read(lines.encode(), catalogue)
    assert answer.causes == ("row_remap_pending",)
    (found,) = [f for f in answer.findings if f.cause]
    assert "3b:00" in found.says
    assert ("node-3" in found.says) == bool(host)


def test_hosts_are_told_apart(catalogue: Catalogue) -> None:
    text = "".join(
        f"node-{host}: index, name, gpu_recovery_action\n"
        f"node-{host}: 0, NVIDIA H200, {'GPU Reset' if host == 2 else 'None'}\n"
        for host in (1, 2, 3)
    )
    answer = read(text.encode(), catalogue)
    (found,) = [f for f in answer.findings if f.cause]
    assert found.entity is not None
    assert found.entity.name == "node-2:0"


def test_a_list_without_names_is_counted(catalogue: Catalogue) -> None:
    block = "    Fabric\n        State   : {}\n        Status  : {}\n--\n"
    good, bad = block.format("Completed", "Success"), block.format("In Progress", "N/A")
    answer = read((good * 5 + bad + good * 2).encode(), catalogue)
    assert answer.causes == ("nvswitch_fault",)
    assert any("GPU 5 of the list" in f.says for f in answer.findings)


def test_one_gpu_of_a_matrix_is_named(catalogue: Catalogue) -> None:
    text = """\
        GPU0    GPU1    GPU2    GPU3    NIC0    CPU Affinity    NUMA Affinity
GPU0     X      NV18    SYS     NV18    PIX     0-47            0
GPU1    NV18     X      SYS     NV18    PIX     0-47            0
GPU2    SYS     SYS      X      SYS     SYS     48-95           1
GPU3    NV18    NV18    SYS      X      PIX     48-95           1
"""
    answer = read(text.encode(), catalogue)
    named = {f.id: f.entity.name for f in answer.findings if f.entity is not None}
    assert named == {"fewer_links": "GPU 2", "nics": "GPU 2"}


def test_a_gpu_of_many_is_called_by_its_address(catalogue: Catalogue) -> None:
    text = "Attached GPUs                             : 8\n" + PENDING["listing"]
    answer = read(text.encode(), catalogue)
    assert {f.entity.gpu if f.entity else 0 for f in answer.findings} == {None}
    assert {f.entity.pci for f in answer.findings if f.entity} == {"00000000:3b:00.0"}
    pending = next(f for f in answer.findings if f.id == "remap_pending")
    assert "--gpu-reset -i 00000000:3b:00.0" in pending.action
    commands = [s.command for d in read(text.encode(), catalogue, judge).diagnoses for s in d.next]
    assert "ssh HOST nvidia-smi -i 00000000:3b:00.0 --gpu-reset" in commands


def test_a_gpu_that_draws_little_is_named(catalogue: Catalogue) -> None:
    rows = [(0, 66, 640), (1, 88, 300), (2, 45, 190), (3, 66, 640), (4, 67, 650), (5, 66, 645)]
    text = "index, name, temperature.gpu, power.draw [W], utilization.gpu [%]\n" + "".join(
        f"{gpu}, NVIDIA H100 80GB HBM3, {temp}, {power} W, 99 %\n" for gpu, temp, power in rows
    )
    answer = read(text.encode(), catalogue)
    named = {f.id: f.entity.name for f in answer.findings if f.entity is not None}
    assert named == {"too_hot_for_model": "GPU 1", "low_draw": "GPU 2"}


def test_thousands_of_gpus_are_bounded(catalogue: Catalogue) -> None:
    rows = "".join(f"GPU-{i:08x}, {20 + i % 60}, 10 %\n" for i in range(3_000))
    answer = read(("uuid, temperature.gpu, utilization.gpu [%]\n" + rows).encode(), catalogue)
    assert any("counted only" in note for note in answer.notes)


def test_tools_before_a_colon_are_no_hosts(catalogue: Catalogue) -> None:
    text = "lspci: 3b:00.0 3D controller: NVIDIA Corporation GH100 [H100 PCIe] (rev a1)\n"
    for found in read(text.encode(), catalogue).findings:
        assert found.entity is None or found.entity.host is None
