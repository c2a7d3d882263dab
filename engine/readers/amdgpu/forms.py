"""The driver's messages that tell something, by the word they start with.

Wordings are those of Linux drivers/gpu/drm/amd from 4.18 to 7.1 (amdgpu_ras.c, amdgpu_ras_eeprom.c,
amdgpu_job.c, amdgpu_device.c, amdgpu_mes.c, gmc_v9_0.c to gmc_v12_0.c, kfd_device_queue_manager.c,
kfd_packet_manager.c, smu_cmn.c, amdgpu_psp.c, amdgpu_xgmi.c).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_RING = r"(?P<ring>[\w.:-]{1,40})"
_ERROR = r"(?P<error>-?\d{1,6})"
_HEX = r"(?:0x)?[0-9A-Fa-f]{1,16}"


@dataclass(frozen=True, slots=True)
class Form:
    """A message: its id, and the pattern that the text must match from its start."""

    id: str
    pattern: re.Pattern[str]


# Words that a message of the form starts with, id, pattern.
_TABLE: tuple[tuple[str, str, str], ...] = (
    # --- time-outs of rings, and the job behind them
    ("ring", "ring_soft", rf"ring {_RING} timeout, but soft recovered"),
    ("ring", "ring_timeout", rf"ring {_RING} timeout"),
    (
        "ring",
        "ring_test",
        rf"ring {_RING} test failed(?: \({_ERROR}\))?",
    ),
    (
        "process",
        "process",
        (
            r"[Pp]rocess (?:information: process )?(?P<process>.{0,60}?) pid (?P<pid>\d{1,10})"
            r"(?: thread .{0,60}? pid \d{1,10})?\s*$"
        ),
    ),
    ("starting", "ring_reset", rf"Starting {_RING} ring reset"),
    ("ring", "ring_reset_done", rf"Ring {_RING} reset succeeded"),
    ("ring", "ring_reset_failed", rf"Ring {_RING} reset fail"),
    ("ip", "block_hung", r"IP block:(?P<block>[\w.]{1,40}) is hung"),
    ("illegal", "illegal_opcode", r"Illegal (?:opcode|instruction) in command stream"),
    ("illegal", "illegal_register", r"Illegal register access in command stream"),
    ("sq_intr:", "wave_error", r"sq_intr: error"),
    # --- resets of the whole GPU
    (
        "gpu",
        "reset_begin",
        r"GPU (?:reset|jobs stop) begin!(?:\.? ?Source: {1,4}(?P<source>\d{1,3}))?",
    ),
    ("gpu", "reset_resume", r"GPU reset succeeded, trying to resume"),
    ("gpu", "reset_done", r"GPU reset ?(?:\(\d{1,9}\))? ?succeeded"),
    ("gpu", "reset_failed", r"GPU (?:(?:smu |psp )?[Mm]ode\d )?reset ?(?:\(\d{1,9}\))? ?failed"),
    ("gpu", "reset_failed", rf"GPU Recovery Failed: {_ERROR}"),
    ("gpu", "reset_end", r"GPU reset end with ret = (?P<error>-\d{1,6})"),
    ("gpu", "recovery_disabled", r"GPU recovery disabled"),
    ("gpu", "reset_failed", r"GPU reset retry is beyond the retry limit"),
    ("gpu", "reset_kind", r"GPU (?:smu |psp )?(?P<reset>mode\d) reset$"),
    (
        "mode0 mode1 mode2 mode3 baco pci pcie legacy link",
        "reset_failed",
        r"(?:MODE|Mode|mode)\d reset failed",
    ),
    (
        "mode0 mode1 mode2 mode3 baco pci pcie legacy link",
        "reset_kind",
        (
            r"(?P<reset>(?:MODE|Mode|mode)\d|BACO|PCI CONFIG|PCI|PCIe link|LEGACY|legacy|LINK|link)"
            r" reset$"
        ),
    ),
    ("asic", "reset_failed", rf"ASIC reset failed with error, {_ERROR}"),
    ("soft", "soft_reset_failed", r"soft reset failed"),
    ("vram", "vram_lost", r"VRAM is lost due to GPU reset"),
    ("device", "wedged", r"device wedged, needs recovery"),
    ("device", "wedged_recovered", r"device wedged, but recovered through reset"),
    # --- compute queues (amdkfd) and their schedulers in firmware
    ("qcm", "preempt_timeout", r"qcm fence wait loop timeout"),
    ("the", "preempt_timeout", r"The cp might be in an unrecoverable state"),
    ("hiq", "preempt_timeout", r"HIQ MQD's queue_doorbell_id0 is not 0"),
    ("queue", "preempt_timeout", r"Queue preemption (?:failed|time)"),
    ("unmapping", "preempt_timeout", r"Unmapping queues failed"),
    ("failed", "evict_failed", r"Failed to (?:evict|quiesce|suspend|remove)\b.{0,60}"),
    (
        "mes",
        "mes_timeout",
        r"MES(?:\(\d{1,2}\))? failed to respon(?:d|se) (?:to )?msg ?= ?(?P<command>[\w ()]{1,48})",
    ),
    ("mes", "mes_stuck", r"MES (?:might be in unrecoverable state|ring buffer is full)"),
    ("timeout", "kiq_timeout", r"timeout waiting for kiq fence"),
    (
        "failed",
        "mes_queue",
        (
            r"failed to (?:remove hardware queue from MES|add hardware queue to MES"
            r"|unmap legacy queue|reset legacy queue|suspend all gangs)"
        ),
    ),
    (
        "runlist",
        "oversubscribed",
        (
            r"Runlist is getting oversubscribed(?: due to(?P<why>[\w .,()'-]{0,120}?)"
            r"(?:\.? Expect.{0,60})?)?\s*$"
        ),
    ),
    ("runlist", "oversubscribed", r"Runlist is getting oversubscribed"),
    ("no", "no_sdma_queue", r"No more (?:SDMA|XGMI) queue"),
    ("pasid process", "no_queue", r".{0,60}DQM create queue type \d failed\. ret -12"),
    # --- firmware that manages power (SMU) or guards the rest (PSP)
    ("smu:", "smu_hang", r"SMU: I'm not done with your(?: previous)? command"),
    ("smu:", "smu_hang", r"SMU: (?:No response|I'm very busy|I'm debugging)"),
    ("smu:", "smu_gone", r"SMU: response:0x[Ff]{8}"),
    ("smu:", "smu_hang", r"SMU: response:0x0{8}"),
    ("smu", "smu_hang", r"SMU (?:is hung|firmware hang|command hang)"),
    ("msg", "smu_hang", r"Msg issuing pre-check failed"),
    (
        "failed",
        "smu_reading",
        (
            r"Failed to (?:export SMU metrics|get current clock freq|get (?:the )?smu metrics"
            r"|read smu metrics|retrieve smu metrics)"
        ),
    ),
    ("last", "smu_hang", r"[Ll]ast message was failed ret is "),
    ("failed", "smu_hang", r"[Ff]ailed to send (?:pre )?message"),
    (
        "failed smc smu",
        "smu_init",
        (
            r"(?:Failed to setup smc hw|SMC engine is not correctly up|SMC is not ready"
            r"|SMU: failed to (?:load|init))"
        ),
    ),
    (
        "psp",
        "psp_command",
        (
            rf"psp gfx command (?P<command>\w{{1,48}})\((?P<number>{_HEX})\) failed and response "
            rf"status is \((?P<status>{_HEX})\)"
        ),
    ),
    (
        "psp",
        "psp_load",
        (
            r"PSP (?:load (?:kdb|sysdrv|sos|spl|tmr|asd|soc drv|intf drv|dbg drv|ras drv|RL) failed"
            r"|firmware loading failed|create ring failed|failed to|Not ready|SOS FW not available)"
        ),
    ),
    (
        "failed",
        "psp_load",
        r"(?:failed to load ucode|Failed to terminate tmr|Failed to load toc)",
    ),
    # --- start of the driver
    ("fatal", "init_failed", r"Fatal error during GPU init"),
    (
        "hw_init sw_init early_init late_init resume suspend",
        "block_failed",
        rf"(?P<step>\w{{1,12}}) of IP block <(?P<block>[\w.]{{1,40}})> failed(?: {_ERROR})?",
    ),
    ("amdgpu_device_ip_init", "init_failed", r"amdgpu_device_ip_init failed"),
    ("gpu", "init_failed", r"[Gg]pu post error"),
    ("probe", "init_failed", rf"probe .{{0,40}}failed with error {_ERROR}"),
    (
        "direct failed early_init",
        "firmware_missing",
        (
            r"(?:Direct firmware load for (?P<file>amdgpu/[\w./-]{1,80}) failed with error -2"
            r"|Failed to (?:get|load|validate|request) (?:\w{1,20} )?firmware "
            r"[\"']?(?P<file2>amdgpu/[\w./-]{1,80}))"
        ),
    ),
    (
        "kfd: skipped",
        "no_atomics",
        r"(?:kfd: )?skipped device (?P<device>[0-9a-f:]{1,12}), PCI rejects atomics",
    ),
    # --- the bus
    ("device", "lost", r"[Dd]evice lost from bus"),
    ("amdgpu: device pci pcie", "lost", r".{0,40}device lost from bus"),
    (
        "pci pci:",
        "pci_error",
        r"PCI error: detected callback,? state\((?P<state>\d)\)",
    ),
    ("pcie", "pcie_recovery_failed", r"PCIe error recovery failed"),
    ("failed", "reads_fail", r"failed to read reg\b"),
    # --- heat and limits
    (
        "warn:",
        "throttled",
        (
            r"WARN: GPU (?:is throttled|thermal throttling temperature reached), expect "
            r"performance decrease\.? ?(?P<why>[^.]{0,160})"
        ),
    ),
    ("error:", "over_temp_sw", r"ERROR: GPU over temperature range ?\(SW CTF\)"),
    ("gpu", "over_temp_sw", r"GPU over temperature range"),
    ("error:", "over_temp_hw", r"ERROR: GPU HW Critical Temperature Fault"),
    ("error:", "shutdown_heat", r"ERROR: System is going to shutdown due to GPU (?:SW|HW) CTF"),
    ("error:", "under_temp", r"ERROR: GPU under temperature range"),
    # --- XGMI
    (
        "xgmi wafl xgmi3x16",
        "xgmi_error",
        r"(?P<error>(?:XGMI3X16|XGMI|WAFL) PCS [A-Z]\w{2,40}) detected",
    ),
    ("xgmi xgmi:", "xgmi_failed", r"(?i:xgmi):? .{0,40}\b(?:[Ff]ail|[Ee]rror|[Tt]imeout)"),
    # --- RAS beside the counts
    ("poison", "poison_created", r"[Pp]oison is created"),
    ("poison", "poison_consumed", r"[Pp]oison is consumed by client (?P<client>\d{1,4})"),
    (
        "ras",
        "poison_consumed",
        r"RAS poison consumption, .{0,60}client id (?P<client>\d{1,4})",
    ),
    ("gpu", "poison_consumed", r"GPU reset for (?P<block>\w{1,20}) RAS poison consumption"),
    (
        "uncorrectable",
        "fatal_event",
        r"[Uu]ncorrectable hardware error ?\((?P<name>\w{1,48})\) detected",
    ),
    (
        "uncorrectable",
        "umc_address",
        r"Uncorrectable error detected in UMC inst: (?P<inst>\d{1,4}), chan_idx: (?P<chan>\d{1,4})",
    ),
    ("accelerator", "aca", r"Accelerator Check Architecture"),
    ("machine", "aca", r"Machine Check Architecture"),
    ("error", "bad_address", r"Error Address\(PA\):(?P<address>0x[0-9A-Fa-f]{1,16})"),
    (
        "saved",
        "bad_pages_limit",
        r"Saved bad pages (?P<pages>\d{1,9}) reaches threshold value (?P<limit>\d{1,9})",
    ),
    ("saved", "bad_pages_saved", r"Saved (?P<pages>\d{1,9}) pages to EEPROM"),
    (
        "ras",
        "bad_pages_near",
        r"RAS records:(?P<pages>\d{1,9}) exceeds? 90% of threshold:(?P<limit>\d{1,9})",
    ),
    (
        "ras",
        "bad_pages_limit",
        r"RAS records:(?P<pages>\d{1,9}) exceeds? threshold:(?P<limit>\d{1,9})",
    ),
    ("this", "bad_status", r"This GPU is in BAD status"),
    ("bad", "bad_pages_limit", r"[Bb]ad page.{0,60}(?:exceed|reach).{0,20}threshold"),
)


def forms_of(text: str) -> Iterable[Form]:
    """Return the forms that a message with this start may have."""
    word = text[:40].split(" ", 1)[0].lower()
    return _BY_WORD.get(word, ())


def _by_word() -> Mapping[str, Sequence[Form]]:
    found: dict[str, list[Form]] = {}
    for words, name, pattern in _TABLE:
        form = Form(name, re.compile(pattern))
        for word in words.split():
            found.setdefault(word, []).append(form)
    return found


_BY_WORD = _by_word()
