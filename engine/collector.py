"""The garbage collector, held off while much is built at once.

Reading an answer of a metrics server makes hundreds of thousands of small objects within
milliseconds. The collector takes that for a reason to walk everything the process holds, several
times over, and finds nothing: it took a third of the time of a question about a large job.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def held_off() -> Iterator[None]:
    """Run no collection in a block that builds much and waits for nothing.

    Where blocks of several threads overlap, the first that ends lets the collector run again.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
