"""The host's own hardware: memory errors, machine checks, firmware's error records, heat.

Lines: Linux arch/x86/kernel/cpu/mce, drivers/edac, drivers/acpi/apei, drivers/firmware/efi/cper.c,
mm/memory-failure.c, drivers/thermal/intel/therm_throt.c.
"""

from __future__ import annotations

import re
from typing import ClassVar

from engine.model import Severity
from engine.readers.host.part import Rule, RulePart

_DIMM = (
    "Find the DIMM (ras-mc-ctl --error-count, ipmitool sel list) and have it replaced; a GPU's own "
    "memory is another matter (nvidia-smi -q -d ECC)."
)
_EDAC = "Linux drivers/edac"
_APEI = "Linux drivers/firmware/efi/cper.c"


class MachinePart(RulePart):
    """Reads errors of the host's memory and processors, and their heat."""

    kind: ClassVar[str] = "host_hardware"
    marks: ClassVar[tuple[str, ...]] = (
        "EDAC ",
        "[Hardware Error]:",
        "Memory failure: 0x",
        "temperature above threshold",
        "critical temperature reached",
        "temperature/speed normal",
        "hardware memory error",
        "Machine check events logged",
    )
    rules: ClassVar = (
        Rule(
            "edac_uncorrected",
            re.compile(
                r"EDAC (?P<controller>[A-Z]{2,4}\d{1,3}): (?P<errors>\d{1,9}) UE "
                r"(?P<what>[\w ]{3,40}?) "
                r"on (?P<dimm>[\w#.:-]{1,60})"
            ),
            Severity.CRITICAL,
            "Uncorrected error of host memory{on}: {dimm} ({controller}). Data was lost; what used "
            "it was killed or is wrong.",
            _DIMM,
            apart=("controller", "dimm"),
            source=_EDAC,
        ),
        Rule(
            "edac_corrected",
            re.compile(
                r"EDAC (?P<controller>[A-Z]{2,4}\d{1,3}): (?P<errors>\d{1,9}) CE "
                r"(?P<what>[\w ]{3,40}?) "
                r"on (?P<dimm>[\w#.:-]{1,60})"
            ),
            Severity.LOW,
            "Corrected errors of host memory{on}: {dimm} ({controller}). Harmless one by one; many "
            "of one module announce its end and cost time.",
            _DIMM,
            apart=("controller", "dimm"),
            source=_EDAC,
        ),
        Rule(
            "memory_failure",
            re.compile(
                r"Memory failure: (?P<page>0x[0-9a-f]{1,16}): (?:recovery action for "
                r"(?P<kind>[\w -]{3,40}): "
                r"(?P<result>Recovered|Ignored|Failed|Delayed)|Killing (?P<process>[^\s:]{1,40})"
                r":(?P<pid>\d{1,10}))"
            ),
            Severity.HIGH,
            "The kernel took a page of host memory out of use{on} after an uncorrected error "
            "({result}{process}).",
            _DIMM,
            source="Linux mm/memory-failure.c",
        ),
        Rule(
            "mce_uncorrected",
            re.compile(
                r"(?:mce: )?(?P<what>Uncorrected hardware memory error in user-access|Fatal "
                r"machine check)"
            ),
            Severity.CRITICAL,
            "Machine check{on}: {what}.",
            _DIMM,
            source="Linux arch/x86/kernel/cpu/mce",
        ),
        Rule(
            "mce",
            re.compile(
                r"\[Hardware Error\]: CPU (?P<cpu>\d{1,5}): Machine Check(?: Exception)?: "
                r"(?P<code>[0-9a-f]{1,4}) Bank (?P<bank>\d{1,3}): (?P<status>[0-9a-f]{16})"
            ),
            Severity.MEDIUM,
            "Machine check{on}: bank {bank} of CPU {cpu}, status 0x{status}.",
            "Decode it with rasdaemon (ras-mc-ctl --errors) or mcelog; the BMC's event log names "
            "the "
            "part.",
            apart=("bank",),
            source="Linux arch/x86/kernel/cpu/mce",
        ),
        Rule(
            "apei_severity",
            re.compile(r"\[Hardware Error\]: {1,8}event severity: (?P<severity>recoverable|fatal)"),
            Severity.HIGH,
            "The firmware reports a {severity} hardware error{on} (ACPI APEI).",
            "Read the record's next lines (section_type, device_id, physical_address) and the "
            "BMC's "
            "event log: ipmitool sel list.",
            apart=("severity",),
            source=_APEI,
        ),
        Rule("apei_corrected", re.compile(r"\[Hardware Error\]: {1,8}event severity: corrected")),
        Rule(
            "apei_memory",
            re.compile(r"\[Hardware Error\]: {1,8}section_type: (?P<section>memory error)"),
            Severity.LOW,
            "The firmware reports an error of host memory{on}; its severity stands in the record.",
            _DIMM,
            source=_APEI,
        ),
        # Records of amdgpu (its address or name stands before the brace) are that reader's.
        Rule(
            "apei_record",
            re.compile(r"(?<!\.\d: )(?<!amdgpu: )\{\d{1,9}\}\[Hardware Error\]:"),
        ),
        Rule(
            "cpu_throttled",
            re.compile(
                r"CPU(?P<cpu>\d{1,5}): (?P<part>Core|Package) temperature above threshold, cpu "
                r"clock throttled"
                r"(?: \(total events = (?P<total_events>\d{1,12})\))?"
            ),
            Severity.MEDIUM,
            "A processor{of} is too hot and lowers its clock ({part}, CPU {cpu}). Data loading and "
            "kernel launches get slower; if the GPUs are hot too, it is the machine's cooling.",
            "Check fans, inlet temperature and heat sinks: ipmitool sdr type temperature; sensors.",
            apart=("part",),
            source="Linux drivers/thermal/intel/therm_throt.c",
        ),
        Rule(
            "critical_temperature",
            re.compile(r"(?P<zone>[\w.-]{1,32}): critical temperature reached"),
            Severity.CRITICAL,
            "The machine{on} reached its critical temperature (zone {zone}) and shuts down.",
            "Check fans, inlet temperature and the rack's cooling before it is started again: "
            "ipmitool sdr type temperature, ipmitool sel list.",
            apart=("zone",),
            source="Linux drivers/thermal",
        ),
        Rule("cpu_normal", re.compile(r"temperature/speed normal")),
        Rule("mce_logged", re.compile(r"Machine check events logged")),
    )
