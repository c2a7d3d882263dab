"""A folder for as long as a demonstration runs; one that was killed loses its own to the next."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "gpuwhy-demo-"
_LOCK = "lock"
# Younger folders are left alone: whoever makes one needs a moment to lock it.
_SETTLED_S = 60.0


@contextmanager
def own_folder() -> Iterator[Path]:
    """Yield an empty folder that is removed afterwards; the kernel frees its lock in any case."""
    sweep_up()
    with tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        with (folder / _LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield folder


def sweep_up() -> None:
    """Remove the folders of demonstrations that did not live to do it."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            about = folder.lstat()
            old = time.time() - about.st_mtime > _SETTLED_S
            if about.st_uid == os.getuid() and old and folder.is_dir() and not _in_use(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _in_use(folder: Path) -> bool:
    """Return whether a demonstration, or a Prometheus that outlived it, holds a lock in it."""
    return any(_locked(folder / name) for name in (_LOCK, "data/lock"))


def _locked(file: Path) -> bool:
    try:
        with file.open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False
