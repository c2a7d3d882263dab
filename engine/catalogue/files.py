"""Finding, reading and hashing the YAML files of ``knowledge/`` and ``rules/``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import engine
from engine.errors import CatalogueError, Problem, UsageError

# The data folders lie beside the package, in a checkout and in an installed wheel alike.
ROOT = Path(engine.__file__).resolve().parent.parent
PARTS = ("knowledge", "rules")
MAX_BYTES = 8 * 1024 * 1024
_TOP_KEY = re.compile(rb"^([a-z_]+)[ \t]*:", re.MULTILINE)
# The key by which a file is known for a rule, and the folder where such a rule lies.
_KINDS = {"when": "symptoms", "patterns": "causes"}


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A YAML file: how messages name it, its path below the part (``xid.yaml``), its bytes."""

    shown: str
    inner: str
    data: bytes


def read_tree(
    root: Path, part: str, *, shown: str = "", skipped: list[Problem] | None = None
) -> list[SourceFile]:
    """Read all YAML files of one part (``knowledge`` or ``rules``) below a root, sorted by path.

    Args:
        root: the folder that holds the part; a part that is not there has no files.
        part: ``knowledge`` or ``rules``.
        shown: how messages name the root; nothing for the packaged one.
        skipped: files that cannot be read are told here and left out; None: they are refused.

    Raises:
        CatalogueError: a file cannot be read, or is larger than 8 MiB, and none may be skipped.
    """
    folder = root / part
    files: list[SourceFile] = []
    problems: list[Problem] = []
    for path in _yaml_paths(folder, problems):
        inner = path.relative_to(folder).as_posix()
        name = f"{shown}/{part}/{inner}" if shown else f"{part}/{inner}"
        found = _read(path, name)
        if isinstance(found, Problem):
            problems.append(found)
        else:
            files.append(SourceFile(name, inner, found))
    if problems and skipped is None:
        raise CatalogueError(problems)
    if skipped is not None:
        skipped += problems
    return files


def read_overlay(
    path: Path, part: str, *, skipped: list[Problem] | None = None
) -> list[SourceFile]:
    """Read one part of an overlay: of a folder as `read_tree` does, or of a single YAML file.

    A single file is a rule if it has the keys of one, else knowledge.

    Raises:
        CatalogueError: a file cannot be read, and none may be skipped.
    """
    if path.is_dir():
        return read_tree(path, part, shown=str(path), skipped=skipped)
    found = _read(path, str(path))
    if isinstance(found, Problem):
        if skipped is None:
            raise CatalogueError([found])
        skipped += [found] if part == PARTS[0] else []
        return []
    keys = {key.decode() for key in _TOP_KEY.findall(found)}
    kind = next((kind for key, kind in _KINDS.items() if key in keys), None)
    if kind is None and "disabled" in keys:
        kind = next((k for k in _KINDS.values() if k in path.absolute().parts), None)
        if kind is None:
            hint = "put it under rules/symptoms/ or rules/causes/, which says of what it is"
            problem = Problem(str(path), 1, 1, "cannot tell what is disabled here", hint)
            if skipped is None:
                raise CatalogueError([problem])
            skipped += [problem] if part == PARTS[0] else []
            return []
    if part != ("rules" if kind else "knowledge"):
        return []
    return [SourceFile(str(path), f"{kind or 'site'}/site/{path.name}", found)]


def _yaml_paths(folder: Path, problems: list[Problem]) -> list[Path]:
    """List YAML files below a folder, but no hidden ones: editors and volume mounts make those."""

    def unreadable(error: OSError) -> None:
        if Path(error.filename) != folder or folder.exists():
            message = f"cannot be listed: {error.strerror or error}"
            problems.append(Problem(str(error.filename), 1, 1, message, "check its permissions"))

    paths: list[Path] = []
    for where, folders, names in os.walk(folder, onerror=unreadable):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths += [
            Path(where, name)
            for name in names
            if name.endswith((".yaml", ".yml")) and not name.startswith(".")
        ]
    return sorted(paths)


def _read(path: Path, name: str) -> bytes | Problem:
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            message = f"is too big: {size / 1024 / 1024:.1f} MiB"
            return Problem(name, 1, 1, message, "split it; one file may have 8 MiB")
        if not path.is_file():
            return Problem(name, 1, 1, "is not a file", "rename or remove it")
        return path.read_bytes()
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
        return Problem(name, 1, 1, message, "check that it exists and that you may read it")


def check_overlay(folder: Path) -> None:
    """Refuse what the user gives as an overlay and cannot be one: a folder, or one YAML file.

    Raises:
        UsageError: it does not exist, may not be entered, or has neither ``knowledge/`` nor
            ``rules/``.
    """
    if folder.suffix in {".yaml", ".yml"} and folder.is_file():
        return
    try:
        exists = folder.is_dir()
        usable = any((folder / part).is_dir() for part in PARTS)
    except OSError as error:
        said = f"folder {folder} cannot be read: {error.strerror or error}"
        raise UsageError(said, hint="check its permissions") from error
    if not exists:
        said = f"no folder {folder} to overlay"
        raise UsageError(said, hint="give a folder that exists, or one .yaml file")
    if not usable:
        raise UsageError(
            f"folder {folder} has neither knowledge/ nor rules/",
            hint="put knowledge files under knowledge/ and rule files under rules/ in it",
        )


def content_hash(files: Iterable[SourceFile], *salt: str) -> str:
    """Return a hash (32 hexadecimal digits) over names and bytes of files, in the order given."""
    digest = blake2b(digest_size=16)
    for word in salt:
        _feed(digest, word.encode())
    for file in files:
        # A file name may hold what is no UTF-8.
        _feed(digest, file.shown.encode("utf-8", "surrogateescape"))
        _feed(digest, file.data)
    return digest.hexdigest()


def _feed(digest: blake2b, data: bytes) -> None:
    """Add a length before the data, so that two lists of files never hash alike by accident."""
    digest.update(len(data).to_bytes(8, "little"))
    digest.update(data)
