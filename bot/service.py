"""The service: what every surface calls to have a question answered."""

from __future__ import annotations

from bot.inbound import Inbound, Outcome, Surface, Ticket

__all__ = ["Inbound", "Outcome", "Surface", "Ticket"]
