"""An index by which the question before, in the same thread, is found."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the index."""
    op.create_index("ix_questions_thread", "questions", ["channel", "thread", "id"])


def downgrade() -> None:
    """Take the index out."""
    op.drop_index("ix_questions_thread", "questions")
