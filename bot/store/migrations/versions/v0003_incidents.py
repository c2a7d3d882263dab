"""Watches and the incidents that they know."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "watches",
        sa.Column("watch", sa.Text, nullable=False),
        sa.Column("claimed_by", sa.Text),
        sa.Column("claimed_until", sa.Double, nullable=False),
        sa.Column("due_at", sa.Double, nullable=False),
        sa.Column("looked_at", sa.Double),
        sa.Column("failure", sa.JSON),
        sa.PrimaryKeyConstraint("watch", name="pk_watches"),
    )
    op.create_table(
        "incidents",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("watch", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("cause", sa.Text, nullable=False),
        sa.Column("entity", sa.Text, nullable=False),
        sa.Column("opened_at", sa.Double),
        sa.Column("closed_at", sa.Double),
        sa.Column("document", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_incidents"),
        sa.ForeignKeyConstraint(["watch"], ["watches.watch"], name="fk_incidents_watch"),
        sa.CheckConstraint(
            "state IN ('pending', 'open', 'closed', 'past')", name=op.f("ck_incidents_state")
        ),
    )
    known = sa.text("state IN ('pending', 'open', 'closed')")
    op.create_index(
        "ix_incidents_known", "incidents", ["watch"], sqlite_where=known, postgresql_where=known
    )


def downgrade() -> None:
    """Drop the tables, with all that is in them."""
    op.drop_table("incidents")
    op.drop_table("watches")
