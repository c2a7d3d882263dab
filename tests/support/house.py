"""A tiny house of knowledge and rules, for tests of the catalogue to bend."""

from __future__ import annotations

from pathlib import Path

KNOWLEDGE = {
    "knowledge/taxonomy.yaml": """\
taxonomy:
  - {id: power_brake, class: fault, scope: node, title: power brake, is: external power brake}
  - {id: power_bound, class: benign, scope: gpu, title: power bound, is: at the power limit}
  - {id: straggler, class: victim, scope: gpu, title: straggler, is: slowest of its job}
""",
    "knowledge/throttle_reasons.yaml": """\
throttle_reasons:
  - id: sw_power_cap
    title: software power cap
    bit: 4
    hex: "0x4"
    nvml: [nvmlClocksEventReasonSwPowerCap]
    dcgm: [DCGM_CLOCKS_EVENT_REASON_SW_POWER_CAP]
    meaning: held at the power limit
    class: benign
    severity: info
    action: nothing
    source: [nvml.h]
    status: confirmed
  - id: hw_power_brake
    title: power brake
    bit: 0x80
    hex: "0x80"
    nvml: [nvmlClocksThrottleReasonHwPowerBrakeSlowdown]
    dcgm: [DCGM_CLOCKS_EVENT_REASON_HW_POWER_BRAKE]
    meaning: something outside asserts the brake
    class: fault
    severity: critical
    action: check the power supplies
    source: [nvml.h]
    status: confirmed
    errata:
      - {claim: 0x4 is the power brake, right: 0x80 is, why: NVML says so}
""",
    "knowledge/signals/clocks.yaml": """\
signals:
  - id: throttle_reasons
    title: clock event reasons
    unit: bitmask
    kind: mask
    scope: gpu
    bits: throttle_reasons
    export: "DCGM_FI_DEV_CLOCKS_EVENT_REASONS, gauge, Reasons."
    spellings:
      - {name: DCGM_FI_DEV_CLOCK_THROTTLE_REASONS, unit: bitmask}
    source: [dcgm_fields.h]
    status: confirmed
  - id: sm_clock
    title: SM clock
    unit: MHz
    kind: gauge
    scope: gpu
    range: [0, 10000]
    core: true
    export: "DCGM_FI_DEV_SM_CLOCK, gauge, SM clock."
    spellings:
      - {name: DCGM_FI_DEV_SM_CLOCK, unit: MHz}
      - {name: DCGM_FI_DEV_SM_CLOCK_HERTZ, unit: Hz, scale: 1.0e-6}
    source: [dcgm_fields.h]
    status: confirmed
    see: [throttle_reasons/sw_power_cap]
""",
}

SYMPTOM = """\
id: {id}
title: a bit is set
version: 1
status: stable
scope: gpu
when: has(throttle_reasons, "{bit}")
threshold: the bit itself
references: [nvml.h]
tests:
  - {{name: set, given: {{throttle_reasons: {mask}}}, expect: true}}
  - {{name: clear, given: {{throttle_reasons: 0}}, expect: false}}
  - {{name: missing, given: {{}}, expect: unknown}}
"""

CAUSE = """\
id: {id}
title: {id} holds
version: 2
status: stable
severity: {severity}
patterns:
  - all: [{symptom}]
    confidence: certain
explains: [{symptom}]
says: "{{entity}} is held back at {{sm_clock}}."
next:
  - {{do: look, command: "nvidia-smi -i {{gpu}} -q", risk: none}}
references: [nvml.h]
false_positives: [none known]
tests:
  - {{name: fires, given: {{throttle_reasons: {mask}}}, expect: fires}}
  - {{name: quiet, given: {{throttle_reasons: 0}}, expect: quiet}}
  - {{name: missing, given: {{}}, expect: unknown}}
"""

RULES = {
    "rules/symptoms/power/brake_bit.yaml": SYMPTOM.format(
        id="brake_bit", bit="hw_power_brake", mask=128
    ),
    "rules/symptoms/power/cap_bit.yaml": SYMPTOM.format(id="cap_bit", bit="sw_power_cap", mask=4),
    "rules/causes/power/power_brake.yaml": CAUSE.format(
        id="power_brake", severity="critical", symptom="brake_bit", mask=128
    ),
    "rules/causes/power/power_bound.yaml": CAUSE.format(
        id="power_bound", severity="info", symptom="cap_bit", mask=4
    ),
}


def write(root: Path, files: dict[str, str]) -> Path:
    """Write files below a folder; return the folder."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root
