"""Faults of PCIe, NVLink and NVSwitch."""

from __future__ import annotations

import numpy as np

from engine.simulate.environment import Environment
from engine.simulate.faults import Effect, Span

# SXid 20034: link fault, raised by the switch when a port goes down.
_SXID_LINK_FAULT = 20034.0
# SXid 12028: a non-fatal egress error.
_SXID_EGRESS = 12028.0


def _pcie_degraded(env: Environment, span: Span) -> None:
    lanes = 4.0 if span.severity >= 0.7 else 8.0
    span.set(env.lanes, lanes if span.fault.value is None else span.fault.value)
    # Input arrives late through the narrow link.
    span.scale(env.work, 1.0 - 0.25 * span.severity)


def _pcie_errors(env: Environment, span: Span) -> None:
    span.set(env.replay_rate, 0.2 + 10.0 * span.severity)
    span.set(env.pcie_error_rate, 0.4 + 25.0 * span.severity)


def _nvlink_errors(env: Environment, span: Span) -> None:
    # DCGM's own health check draws its line at 100 CRC errors per second.
    span.set(env.flit_rate, 20.0 + 230.0 * span.severity)
    span.set(env.data_rate, 1.0 + 15.0 * span.severity)
    span.set(env.nv_replay_rate, 0.3 + 5.0 * span.severity)
    span.set(env.nv_recovery_rate, 0.05 * span.severity)
    span.scale(env.nvlink, 1.0 - 0.2 * span.severity)


def _nvlink_down(env: Environment, span: Span) -> None:
    span.scale(env.nvlink, 1.0 - span.severity)
    span.scale(env.work, np.where(span.age < 60.0, 0.0, 0.8))
    span.set(env.fabric_health, 3.0)


def _nvlink_degraded(env: Environment, span: Span) -> None:
    span.scale(env.nvlink, 1.0 - 0.6 * span.severity)
    span.scale(env.work, 1.0 - 0.15 * span.severity)


def _nvswitch_fault(env: Environment, span: Span) -> None:
    fatal = span.severity >= 0.5
    code = (_SXID_LINK_FAULT if fatal else _SXID_EGRESS) if span.fault.value is None else None
    target = env.sxid_fatal if fatal else env.sxid_nonfatal
    span.set(target, float(span.fault.value or 0) if code is None else code)
    if fatal:
        span.set(env.fabric_health, 2.0)
        span.scale(env.nvlink, 0.0)
        span.scale(env.work, 0.3)


EFFECTS = {
    "pcie_degraded": Effect(_pcie_degraded),
    "pcie_errors": Effect(_pcie_errors),
    "nvlink_errors": Effect(_nvlink_errors),
    "nvlink_down": Effect(_nvlink_down, xid=74),
    "nvlink_degraded": Effect(_nvlink_degraded),
    "nvswitch_fault": Effect(_nvswitch_fault, node=True),
}
