"""The audit log: every use, allowed or not. Rows are added, never changed."""

from __future__ import annotations

from sqlalchemy import insert, select, tuple_

from bot.store.database import Database
from bot.store.records import AuditEntry, Decision, JsonObject
from bot.store.tables import audit


class Audits(Database):
    """The audit log of a database."""

    async def add_audit(
        self,
        *,
        actor: JsonObject,
        surface: str,
        command: str,
        target: str,
        decision: Decision,
        reason: str,
        request_id: str | None = None,
        now: float,
    ) -> str:
        """Store a use; return the entry's id.

        Raises:
            StoreError: the database cannot be used.
        """
        row = {
            "id": self._new_id(now),
            "at": now,
            "actor": actor,
            "surface": surface,
            "command": command,
            "target": target,
            "decision": decision,
            "reason": reason,
            "request_id": request_id,
        }
        await self._changed(insert(audit).values(row))
        return str(row["id"])

    async def list_audit(
        self, *, limit: int = 100, before: AuditEntry | None = None
    ) -> tuple[AuditEntry, ...]:
        """Return the newest entries, newest first.

        Args:
            limit: at most so many.
            before: only what is older than this entry, for the next page.

        Raises:
            StoreError: the database cannot be used.
        """
        place = tuple_(audit.c.at, audit.c.id)
        query = select(audit)
        if before is not None:
            query = query.where(place < (before.at, before.id))
        query = query.order_by(audit.c.at.desc(), audit.c.id.desc()).limit(limit)
        return tuple(
            AuditEntry(**{**row._mapping, "decision": Decision(row.decision)})  # noqa: SLF001
            for row in await self._rows(query)
        )
