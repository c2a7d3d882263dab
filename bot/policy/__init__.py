"""Who may do what: rules from the settings, decisions with a reason, and the groups of Slack."""

from bot.policy.errors import RefusedError
from bot.policy.policy import CAREFUL, Decision, Policy
from bot.policy.rules import PolicyRule

__all__ = ["CAREFUL", "Decision", "Policy", "PolicyRule", "RefusedError"]
