"""The journal of a capture, kept in the store with its job."""

from __future__ import annotations

from collections.abc import Callable

from bot.store import JsonObject, Store, StoreError
from engine.capture import CaptureError, Entry, Phase

_PHASE = "phase"
_DETAIL = "detail"


class StoreJournal:
    """Writes down the steps of one job; see `engine.capture.Journal`.

    Args:
        store: keeps them.
        job_id: the job.
        worker: who runs it: nobody else may write.
        clock: Unix seconds.
    """

    def __init__(self, store: Store, job_id: str, worker: str, clock: Callable[[], float]) -> None:
        self._store = store
        self._job_id = job_id
        self._worker = worker
        self._clock = clock

    async def append(self, entry: Entry) -> None:
        """Keep an entry.

        Raises:
            CaptureError: it is not kept, or another worker has the job: the step must not happen.
        """
        detail: JsonObject = {_PHASE: str(entry.phase), _DETAIL: dict(entry.detail)}
        try:
            kept = await self._store.append_journal(
                self._job_id, self._worker, step=entry.step, detail=detail, now=self._clock()
            )
        except StoreError as error:
            said = f"the journal cannot be written: {error.message}"
            raise CaptureError(said, hint=error.hint) from None
        if not kept:
            raise CaptureError("another server has this capture by now")

    async def entries(self) -> tuple[Entry, ...]:
        """Return what was written so far, in order.

        Raises:
            StoreError: the database cannot be used.
        """
        return tuple(
            Entry(row.step, Phase(str(row.detail[_PHASE])), _mapping(row.detail[_DETAIL]))
            for row in await self._store.list_journal(self._job_id)
        )


def _mapping(value: object) -> dict[str, object]:
    return dict(value) if isinstance(value, dict) else {}
