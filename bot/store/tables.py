"""The tables. `bot.store.migrations` makes the same ones; a test holds the two against each other.

Indices that only cover what is not finished keep claiming fast however much history there is. The
databases use such an index only where a query repeats its condition word for word, hence `one_of`.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    ColumnElement,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    literal,
)

from bot.store.columns import Document, Serial, Words
from bot.store.records import (
    Decision,
    DeliveryKind,
    DeliveryState,
    IncidentState,
    JobState,
    QuestionState,
)

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)

OPEN_QUESTIONS = (QuestionState.RECEIVED, QuestionState.WORKING)
UNSENT = (DeliveryState.PENDING, DeliveryState.SENDING)
RUNNABLE_JOBS = (JobState.APPROVED, JobState.RUNNING)
KNOWN_INCIDENTS = (IncidentState.PENDING, IncidentState.OPEN, IncidentState.CLOSED)


def one_of(column: ColumnElement[str], values: Iterable[str]) -> ColumnElement[bool]:
    """Return the condition that a column has one of some values, written out in the SQL."""
    return column.in_([literal(str(value), literal_execute=True) for value in values])


def _known(column: str, values: type[StrEnum]) -> CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=column)


questions = Table(
    "questions",
    metadata,
    Column("id", Words, primary_key=True),
    Column("dedupe_key", Words, nullable=False, unique=True),
    Column("surface", Words, nullable=False),
    Column("actor", Document, nullable=False),
    Column("channel", Words, nullable=False),
    Column("thread", Words),
    Column("request", Document, nullable=False),
    Column("state", Words, nullable=False),
    Column("claimed_by", Words),
    Column("claimed_until", Double, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("answered_at", Double),
    Column("verdict", Words),
    Column("cause", Words),
    Column("answer", Document),
    Column("error", Document),
    _known("state", QuestionState),
)
Index("ix_questions_thread", questions.c.channel, questions.c.thread, questions.c.id)
_open = one_of(questions.c.state, OPEN_QUESTIONS)
Index(
    "ix_questions_open",
    questions.c.created_at,
    questions.c.id,
    sqlite_where=_open,
    postgresql_where=_open,
)
Index("ix_questions_created_at", questions.c.created_at)

deliveries = Table(
    "deliveries",
    metadata,
    Column("seq", Serial, primary_key=True, autoincrement=True),
    Column("id", Words, nullable=False, unique=True),
    Column("question_id", Words, ForeignKey("questions.id"), index=True),
    Column("channel", Words, nullable=False),
    Column("thread", Words),
    Column("kind", Words, nullable=False),
    Column("payload", Document, nullable=False),
    Column("state", Words, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("not_before", Double, nullable=False),
    Column("claimed_by", Words),
    Column("claimed_until", Double, nullable=False),
    Column("uncertain", Boolean, nullable=False),
    Column("message_ts", Words),
    Column("coalesce_key", Words, index=True),
    Column("created_at", Double, nullable=False),
    Column("sent_at", Double),
    Column("error", Words),
    _known("kind", DeliveryKind),
    _known("state", DeliveryState),
    # The number of a row that was deleted is not given again: it is the order of the queue.
    sqlite_autoincrement=True,
)
_unsent = one_of(deliveries.c.state, UNSENT)
Index(
    "ix_deliveries_unsent",
    deliveries.c.channel,
    deliveries.c.seq,
    sqlite_where=_unsent,
    postgresql_where=_unsent,
)

channels = Table(
    "channels",
    metadata,
    Column("channel", Words, primary_key=True),
    Column("last_sent_at", Double, nullable=False),
)

jobs = Table(
    "jobs",
    metadata,
    Column("id", Words, primary_key=True),
    Column("kind", Words, nullable=False),
    Column("question_id", Words, ForeignKey("questions.id"), index=True),
    Column("plan", Document, nullable=False),
    Column("state", Words, nullable=False, index=True),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("decided_by", Document),
    Column("decided_at", Double),
    Column("claimed_by", Words),
    Column("claimed_until", Double, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("finished_at", Double),
    Column("result", Document),
    _known("state", JobState),
)

job_journal = Table(
    "job_journal",
    metadata,
    Column("job_id", Words, ForeignKey("jobs.id"), primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("step", Words, nullable=False),
    Column("detail", Document, nullable=False),
    Column("at", Double, nullable=False),
)

watches = Table(
    "watches",
    metadata,
    Column("watch", Words, primary_key=True),
    Column("claimed_by", Words),
    Column("claimed_until", Double, nullable=False),
    Column("due_at", Double, nullable=False),
    Column("looked_at", Double),
    Column("failure", Document),
)

incidents = Table(
    "incidents",
    metadata,
    Column("id", Words, primary_key=True),
    Column("watch", Words, ForeignKey("watches.watch"), nullable=False),
    Column("state", Words, nullable=False),
    Column("cause", Words, nullable=False),
    Column("entity", Words, nullable=False),
    Column("opened_at", Double),
    Column("closed_at", Double),
    Column("document", Document, nullable=False),
    _known("state", IncidentState),
)
_not_over = one_of(incidents.c.state, KNOWN_INCIDENTS)
Index(
    "ix_incidents_known",
    incidents.c.watch,
    sqlite_where=_not_over,
    postgresql_where=_not_over,
)

audit = Table(
    "audit",
    metadata,
    Column("id", Words, primary_key=True),
    Column("at", Double, nullable=False),
    Column("actor", Document, nullable=False),
    Column("surface", Words, nullable=False),
    Column("command", Words, nullable=False),
    Column("target", Words, nullable=False),
    Column("decision", Words, nullable=False),
    Column("reason", Words, nullable=False),
    Column("request_id", Words),
    _known("decision", Decision),
)
Index("ix_audit_at", audit.c.at, audit.c.id)
