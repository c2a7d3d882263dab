"""What ``amd-smi`` and ``rocm-smi`` say of themselves: version, warnings of access and sleep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.model import Finding, Severity
from engine.readers.amd_smi.limits import KIND
from engine.readers.amd_smi.state import Groups, LowPower, Version
from engine.readers.listing import at, finding, node

_CLI = "ROCm/rocm-systems projects/amdsmi amdsmi_cli/amdsmi_helpers.py"


def notices(records: Sequence[object]) -> Iterator[Finding]:
    """Yield each kind of notice once."""
    versions = [one for one in records if isinstance(one, Version)]
    asleep = [one for one in records if isinstance(one, LowPower)]
    groups = [one for one in records if isinstance(one, Groups)]
    yield from map(_version, versions[:1])
    yield from map(_low_power, asleep[:1])
    yield from map(_groups, groups[:1])


def _groups(one: Groups) -> Finding:
    return finding(
        KIND,
        "groups_missing",
        Severity.INFO,
        f"{at(one.host)}amd-smi warns that the user is not in the group(s) {one.names}. Readings "
        "that it printed are right; programs may not be able to open /dev/kfd and /dev/dri.",
        f"Where a program sees no GPU: usermod -aG {one.names.replace(' ', '')} USER and log in "
        "anew; in containers --device=/dev/kfd --device=/dev/dri --group-add of these groups.",
        line=one.line,
        data={"groups": one.names.split(", ")},
        entity=node(one.host),
        sources=(_CLI,),
    )


def _low_power(one: LowPower) -> Finding:
    return finding(
        KIND,
        "low_power_warning",
        Severity.INFO,
        f"{at(one.host)}rocm-smi warns of a low-power state: it says so when the runtime status of "
        "any AMD device is not active, an integrated GPU among them. It says nothing about boards "
        "that work: clock and power in the table do.",
        "Nothing, if clocks and power of the busy boards are as usual; amd-smi does not print it.",
        line=one.line,
        entity=node(one.host),
        sources=("ROCm/rocm-systems projects/rocm-smi-lib python_smi_tools/rocm_smi.py",),
    )


def _version(one: Version) -> Finding:
    # The library's version has four parts and looks like an address: it is left out.
    parts = {k: v for k, v in one.parts.items() if v and v != "N/A" and k != "library"}
    return finding(
        KIND,
        "version",
        Severity.INFO,
        f"{at(one.host)}AMD SMI {parts.get('tool', '?')}"
        + (f", ROCm {parts['rocm']}" if "rocm" in parts else "")
        + (f", driver amdgpu {parts['driver']}" if "driver" in parts else "")
        + ".",
        "Nothing. Driver and ROCm must fit each other: AMD's compatibility matrix.",
        line=one.line,
        data={f"{name}_version": value for name, value in parts.items()},
        entity=node(one.host),
    )
