"""Errors of captures; see `engine.errors` for the tree they belong to.

CaptureError            exit 2  a capture that cannot be planned or run
└── UnreachableError    exit 3  the target's machine cannot be reached, or does not answer in time
"""

from __future__ import annotations

from engine.errors import GpuwhyError


class CaptureError(GpuwhyError):
    """A capture is not possible, or went wrong; what had been started has been undone."""

    default_code = "capture"


class UnreachableError(CaptureError):
    """The target's machine cannot be reached, or a command there did not end in time."""

    exit_status = 3
    default_code = "target_unreachable"
