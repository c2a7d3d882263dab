"""The compiled index: validated knowledge or rules as JSON, named by a hash of the YAML.

It is looked for in the package (put there when the wheel is built) and then in the user's cache
folder. One that is missing, stale or damaged is passed over; the YAML is then compiled and the
result kept in the cache folder, silently not where that cannot be written. Standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import engine
from engine.catalogue.files import SourceFile, content_hash

# Raised whenever the stored form changes; part of every key, as is the version of the package.
FORMAT = 3
KEPT = 4

PACKAGED = Path(__file__).parent / "_index"


def key_for(files: Iterable[SourceFile]) -> str:
    """Return the name under which the compiled form of some files is kept."""
    return content_hash(files, f"format {FORMAT}", engine.__version__)


def find(part: str, key: str) -> dict[str, Any] | None:
    """Return the compiled form of a part, or None if there is no good index for the key."""
    for folder in (PACKAGED, cache_folder()):
        if folder is not None:
            found = _read(folder / f"{part}-{key}.json")
            if found is not None:
                return found
    return None


def _read(path: Path) -> dict[str, Any] | None:
    """Read an index; the first line is a digest of the rest, so that damage is noticed."""
    try:
        digest, _, body = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    if digest.decode("ascii", "replace") != _digest(body):
        return None
    found = json.loads(body)
    return found if isinstance(found, dict) else None


def save(folder: Path, part: str, key: str, data: dict[str, Any]) -> Path:
    """Write an index so that a reader sees all of it or nothing; return its path.

    Raises:
        OSError: the folder cannot be made or written.
    """
    import tempfile  # noqa: PLC0415 - reading, which must start fast, does without

    folder.mkdir(parents=True, exist_ok=True)
    body = json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()
    target = folder / f"{part}-{key}.json"
    handle, temporary = tempfile.mkstemp(prefix=f".{part}-", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            # Temporary files are private; an index in the package is for every user.
            os.fchmod(file.fileno(), 0o644)
            file.write(_digest(body).encode() + b"\n" + body)
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return target


def save_in_cache(part: str, key: str, data: dict[str, Any]) -> None:
    """Keep an index in the user's cache folder if that can be written, and drop old ones."""
    folder = cache_folder()
    if folder is None:
        return
    # A cache that cannot be written costs time only: the next start compiles again.
    with contextlib.suppress(OSError):
        save(folder, part, key, data)
        old = sorted(folder.glob(f"{part}-*.json"), key=lambda p: p.stat().st_mtime, reverse=True)
        for path in old[KEPT:]:
            path.unlink(missing_ok=True)


def cache_folder() -> Path | None:
    """Return ``$XDG_CACHE_HOME/gpuwhy``, else ``~/.cache/gpuwhy``; None without a home."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification says to ignore a path that is not absolute.
    if given and Path(given).is_absolute():
        return Path(given) / "gpuwhy"
    try:
        return Path.home() / ".cache" / "gpuwhy"
    except RuntimeError:
        return None


def _digest(body: bytes) -> str:
    return blake2b(body, digest_size=16).hexdigest()
