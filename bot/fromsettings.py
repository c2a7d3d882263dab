"""The parts of a server that are made from the settings alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.delivery.slack import SlackMessenger
from bot.policy import Policy, PolicyRule
from engine.capture import CaptureSettings, SshSettings, Via
from engine.capture.settings import own_names
from engine.errors import UsageError

if TYPE_CHECKING:
    from bot.serversettings import PolicySection
    from bot.settings import Settings


def store_url(settings: Settings) -> str:
    """Return the address of the store."""
    if settings.store.url is not None:
        return settings.store.url.get_secret_value()
    return f"sqlite:///{settings.server.folder.absolute() / 'gpuwhy.sqlite3'}"


def capture_settings(settings: Settings) -> CaptureSettings:
    """Return the settings of captures; files are kept under the data folder."""
    section = settings.capture
    ssh = section.ssh
    given = {
        name: value
        for name in ("nsys", "importer", "target_folder")
        if (value := getattr(section, name)) is not None
    }
    return CaptureSettings(
        folder=settings.server.folder / "captures",
        via=Via(section.via),
        local_hosts=(*own_names(), *section.local_hosts),
        ssh=SshSettings(
            user=ssh.user,
            port=ssh.port,
            identity=ssh.identity,
            config=ssh.config,
            options=ssh.options,
        ),
        max_duration_s=section.max_duration,
        max_file_bytes=section.max_file_bytes,
        **given,
    )


def policy_rules(section: PolicySection) -> tuple[PolicyRule, ...]:
    """Return the rules that the settings describe."""
    return tuple(
        PolicyRule(rule.effect == "allow", rule.who, rule.channels, rule.commands, rule.targets)
        for rule in section.rules
    )


def make_policy(section: PolicySection) -> Policy:
    """Return the policy that the settings describe."""
    return Policy(policy_rules(section), open_by_default=section.default == "allow")


def make_messenger(settings: Settings) -> SlackMessenger | None:
    """Return what sends to Slack; None if Slack is off.

    Raises:
        UsageError: a secret that the mode needs is missing, or is another one.
    """
    slack = settings.slack
    if slack.mode == "off":
        return None
    needed = {"bot_token": slack.bot_token}
    if slack.mode == "socket":
        needed["app_token"] = slack.app_token
    else:
        needed["signing_secret"] = slack.signing_secret
    for name, secret in needed.items():
        if secret is None:
            hint = f"set GPUWHY_SLACK_{name.upper()}, or …_FILE"
            raise UsageError(f"slack.mode {slack.mode} needs slack.{name}", hint=hint)
    assert slack.bot_token is not None
    token = slack.bot_token.get_secret_value()
    hint = "the bot token begins with xoxb-, the app token with xapp-"
    if token.startswith("xapp-"):
        raise UsageError("slack.bot_token is an app token", hint=hint)
    if slack.app_token is not None and slack.app_token.get_secret_value().startswith("xoxb-"):
        raise UsageError("slack.app_token is a bot token", hint=hint)
    return SlackMessenger(token, slack.api_url, slack.timeout)


def public_url(settings: Settings) -> str:
    """Return the address under which people reach the server."""
    return settings.server.url or f"http://{settings.server.listen}"
