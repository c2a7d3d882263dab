"""Listeners: one module a feature, each with ``register(app, service)``."""

from __future__ import annotations

from slack_bolt.app.async_app import AsyncApp

from bot.surfaces.slack.listeners import actions, command, mention, message, rest, shortcut
from bot.surfaces.slack.port import Service

__all__ = ["register"]


def register(app: AsyncApp, service: Service) -> None:
    """Register all listeners; the first that matches takes a request."""
    for feature in (command, mention, message, shortcut, actions, rest):
        feature.register(app, service)
