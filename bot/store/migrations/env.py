"""Run by alembic: applies the migrations on the connection that `bot.store.migrate` gives."""

from __future__ import annotations

from alembic import context

from bot.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    # SQLite cannot alter most things in place: alembic then copies the table.
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
