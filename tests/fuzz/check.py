"""What must hold for the answer to any input."""

from __future__ import annotations

import json
import re
import time
from functools import cache

from engine.catalogue import Catalogue, load_catalogue
from engine.errors import GpuwhyError
from engine.model import Read, to_json
from engine.readers import read
from engine.readers.guard import Guard

# CPU time: nothing of a few hundred KB takes longer, and how busy the machine is does not matter.
LONGEST_S = 10.0
Guard.strict = True
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


@cache
def catalogue() -> Catalogue:
    """The packaged knowledge and rules."""
    return load_catalogue()


def check(raw: bytes) -> None:
    """Read an input.

    Raises:
        AssertionError: the answer is not as it must be.
        Exception: whatever the readers let through, which is a fault too.
    """
    began = time.thread_time()
    try:
        answer = read(raw, catalogue())
    except GpuwhyError as error:
        _is_one_line(error.one_line())
        return
    took = time.thread_time() - began
    assert took < LONGEST_S, f"took {took:.1f} s"
    _holds(answer, raw)


def _is_one_line(said: str) -> None:
    assert "\n" not in said, said


def _holds(answer: Read, raw: bytes) -> None:
    document = json.dumps(to_json(answer), allow_nan=False)
    assert len(document) < 40 * len(raw) + 2_000_000, "the answer is far larger than its input"
    unknown = set(answer.causes) - set(catalogue().taxonomy)
    assert not unknown, unknown
    digits = None
    for finding in answer.findings:
        assert finding.says.strip(), finding
        assert not _CONTROL.search(finding.says), finding.says
        xid = finding.data.get("xid")
        if finding.kind == "xid" and xid is not None:
            if digits is None:
                digits = _text(raw)
            assert str(xid) in digits, f"Xid {xid} does not stand in the input"


def _text(raw: bytes) -> str:
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raw = raw.decode("utf-16", "replace").encode()
    # What colours, NUL bytes and quotation marks tore apart is read as one.
    plain = re.sub(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x00", b"", raw)
    return plain.decode("utf-8", "replace")
