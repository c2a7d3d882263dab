"""The store: questions, deliveries, jobs, incidents and the audit log, in SQLite or PostgreSQL.

Nothing else in the product imports SQLAlchemy. A `Store` is opened once a process and shared.
"""

from __future__ import annotations

from bot.store.errors import StoreError
from bot.store.records import (
    Added,
    AuditEntry,
    Backlog,
    Decision,
    Delivery,
    DeliveryKind,
    DeliveryState,
    IncidentState,
    Job,
    JobState,
    JournalEntry,
    JsonObject,
    NewDelivery,
    Question,
    QuestionState,
    StoredIncident,
    StoredWatch,
)
from bot.store.store import Store

__all__ = [
    "Added",
    "AuditEntry",
    "Backlog",
    "Decision",
    "Delivery",
    "DeliveryKind",
    "DeliveryState",
    "IncidentState",
    "Job",
    "JobState",
    "JournalEntry",
    "JsonObject",
    "NewDelivery",
    "Question",
    "QuestionState",
    "Store",
    "StoreError",
    "StoredIncident",
    "StoredWatch",
]
