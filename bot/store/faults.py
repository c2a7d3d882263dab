"""What the drivers raise, told in one line: no SQL, no values, no secrets."""

from __future__ import annotations

from sqlalchemy.exc import DBAPIError, StatementError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from bot.store.address import Address
from bot.store.errors import StoreError

_Fault = tuple[str, str, str]  # code, what is the matter, what to do

_SILENT = ("store_unreachable", "does not answer in time", "see whether it is overloaded")
_GONE = ("store_unreachable", "cannot be reached", "see whether it runs, and check the address")
_LOST = ("store_unreachable", "went away", "see whether it runs")
_NO_FILE = (
    "store_unreachable",
    "cannot be opened",
    "see whether it is there, and who may use its folder",
)
_NO_NAME = ("store_unreachable", "does not exist", "create it")
_IO = ("store_unreachable", "cannot be read or written", "see whether its disk is well")
_LOCKED = ("store_locked", "is locked by another program", "see what else uses it")
_DENIED = ("store_denied", "lets us not in", "check user, password and rights")
_READ_ONLY = ("store_denied", "cannot be written", "check the mode and owner of file and folder")
_FULL = ("store_full", "has no space left", "make room on its disk")
_BUSY = ("store_full", "takes no more connections", "see what holds them, or raise its limit")
_DAMAGED = ("store_damaged", "is damaged or no database", "restore it from a backup")
_OUTDATED = ("store_outdated", "lacks tables of this version", "let it be migrated")
_REFUSED = ("store_refused", "refuses what is to be stored", "")

# SQLite's result codes (sqlite.org/rescode.html); the longest that fits wins.
_BY_NAME: dict[str, _Fault] = {
    "SQLITE_BUSY": _LOCKED,
    "SQLITE_LOCKED": _LOCKED,
    "SQLITE_CANTOPEN": _NO_FILE,
    "SQLITE_READONLY_DBMOVED": _NO_FILE,
    "SQLITE_READONLY": _READ_ONLY,
    "SQLITE_PERM": _READ_ONLY,
    "SQLITE_AUTH": _READ_ONLY,
    "SQLITE_FULL": _FULL,
    "SQLITE_IOERR": _IO,
    "SQLITE_CORRUPT": _DAMAGED,
    "SQLITE_NOTADB": _DAMAGED,
    "SQLITE_ERROR": _OUTDATED,  # our SQL is right for our tables, so they are others
    "SQLITE_SCHEMA": _OUTDATED,
}
# PostgreSQL's SQLSTATE (its manual, appendix A); the longest that fits wins.
_BY_STATE: dict[str, _Fault] = {
    "08": _LOST,
    "25006": _READ_ONLY,
    "25P03": _SILENT,
    "28": _DENIED,
    "3D": _NO_NAME,
    "40": _LOCKED,
    "42501": _DENIED,
    "42": _OUTDATED,
    "53": _BUSY,
    "53100": _FULL,
    "55P03": _LOCKED,
    "57014": _SILENT,
    "57P": _LOST,
    "58": _IO,
    "XX": _DAMAGED,
}


def store_error(error: Exception, address: Address) -> StoreError:
    """Return the error to raise for one that a driver raised."""
    code, what, hint = _fault(error)
    return StoreError(f"{address} {what}", hint=hint, code=code)


def _fault(error: Exception) -> _Fault:
    if isinstance(error, PoolTimeout):
        return _SILENT
    cause = error.orig if isinstance(error, StatementError) else error
    if name := getattr(cause, "sqlite_errorname", None):
        return _longest(_BY_NAME, name)
    if state := getattr(cause, "sqlstate", None):
        return _longest(_BY_STATE, state)
    if isinstance(cause, TimeoutError):
        return _SILENT
    if isinstance(cause, FileNotFoundError):
        return _NO_FILE
    if isinstance(cause, PermissionError):
        return _READ_ONLY
    if isinstance(cause, OSError):
        return _GONE
    if isinstance(error, DBAPIError):
        return _LOST  # a driver's own complaint: its connection is closed
    if isinstance(error, StatementError):
        return _REFUSED  # a value of a kind that cannot be stored
    return _GONE


def _longest(faults: dict[str, _Fault], code: str) -> _Fault:
    fitting = [start for start in faults if code.startswith(start)]
    return faults[max(fitting, key=len)] if fitting else _REFUSED
