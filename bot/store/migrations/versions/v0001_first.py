"""The first tables: questions, deliveries, channels, jobs with their journal, audit."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "questions",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("dedupe_key", sa.Text, nullable=False),
        sa.Column("surface", sa.Text, nullable=False),
        sa.Column("actor", sa.JSON, nullable=False),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("thread", sa.Text),
        sa.Column("request", sa.JSON, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("claimed_by", sa.Text),
        sa.Column("claimed_until", sa.Double, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("answered_at", sa.Double),
        sa.Column("verdict", sa.Text),
        sa.Column("cause", sa.Text),
        sa.Column("answer", sa.JSON),
        sa.Column("error", sa.JSON),
        sa.PrimaryKeyConstraint("id", name="pk_questions"),
        sa.UniqueConstraint("dedupe_key", name="uq_questions_dedupe_key"),
        _known("questions", "state", "received", "working", "answered", "failed"),
    )
    _index_where(
        "ix_questions_open", "questions", ["created_at", "id"], "state IN ('received', 'working')"
    )
    op.create_index("ix_questions_created_at", "questions", ["created_at"])

    op.create_table(
        "deliveries",
        sa.Column("seq", _SERIAL, autoincrement=True, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("question_id", sa.Text),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("thread", sa.Text),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("payload", sa.JSON, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("not_before", sa.Double, nullable=False),
        sa.Column("claimed_by", sa.Text),
        sa.Column("claimed_until", sa.Double, nullable=False),
        sa.Column("uncertain", sa.Boolean, nullable=False),
        sa.Column("message_ts", sa.Text),
        sa.Column("coalesce_key", sa.Text),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("sent_at", sa.Double),
        sa.Column("error", sa.Text),
        sa.PrimaryKeyConstraint("seq", name="pk_deliveries"),
        sa.UniqueConstraint("id", name="uq_deliveries_id"),
        sa.ForeignKeyConstraint(
            ["question_id"], ["questions.id"], name="fk_deliveries_question_id"
        ),
        _known("deliveries", "kind", "post", "update", "file", "ephemeral", "response_url"),
        _known("deliveries", "state", "pending", "sending", "sent", "dead"),
        sqlite_autoincrement=True,
    )
    _index_where(
        "ix_deliveries_unsent",
        "deliveries",
        ["channel", "seq"],
        "state IN ('pending', 'sending')",
    )
    op.create_index("ix_deliveries_question_id", "deliveries", ["question_id"])
    op.create_index("ix_deliveries_coalesce_key", "deliveries", ["coalesce_key"])

    op.create_table(
        "channels",
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("last_sent_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("channel", name="pk_channels"),
    )

    op.create_table(
        "jobs",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("question_id", sa.Text),
        sa.Column("plan", sa.JSON, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double, nullable=False),
        sa.Column("decided_by", sa.JSON),
        sa.Column("decided_at", sa.Double),
        sa.Column("claimed_by", sa.Text),
        sa.Column("claimed_until", sa.Double, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("finished_at", sa.Double),
        sa.Column("result", sa.JSON),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
        sa.ForeignKeyConstraint(["question_id"], ["questions.id"], name="fk_jobs_question_id"),
        _known(
            "jobs",
            "state",
            *("planned", "approved", "denied", "running", "done", "failed", "expired"),
        ),
    )
    op.create_index("ix_jobs_question_id", "jobs", ["question_id"])
    op.create_index("ix_jobs_state", "jobs", ["state"])

    op.create_table(
        "job_journal",
        sa.Column("job_id", sa.Text, nullable=False),
        sa.Column("seq", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("step", sa.Text, nullable=False),
        sa.Column("detail", sa.JSON, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("job_id", "seq", name="pk_job_journal"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_job_journal_job_id"),
    )

    op.create_table(
        "audit",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("actor", sa.JSON, nullable=False),
        sa.Column("surface", sa.Text, nullable=False),
        sa.Column("command", sa.Text, nullable=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("decision", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("request_id", sa.Text),
        sa.PrimaryKeyConstraint("id", name="pk_audit"),
        _known("audit", "decision", "allow", "deny"),
    )
    op.create_index("ix_audit_at", "audit", ["at", "id"])


def downgrade() -> None:
    """Drop the tables, with all that is in them."""
    for table in ("audit", "job_journal", "jobs", "channels", "deliveries", "questions"):
        op.drop_table(table)


def _known(table: str, column: str, *values: str) -> sa.CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return sa.CheckConstraint(f"{column} IN ({listed})", name=op.f(f"ck_{table}_{column}"))


def _index_where(name: str, table: str, columns: list[str], condition: str) -> None:
    where = sa.text(condition)
    op.create_index(name, table, columns, sqlite_where=where, postgresql_where=where)
