"""Settings of ``gpuwhy serve``: the server, its store, Slack, and who may do what."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from platformdirs import user_data_path
from pydantic import AfterValidator, Field, SecretStr

from bot.policy.rules import EVERYONE, KINDS
from bot.settingtypes import (
    ChannelId,
    FromJson,
    HoldSeconds,
    ListenAddress,
    Seconds,
    Section,
    Tokens,
    WebAddress,
    Words,
)

DEFAULT_LISTEN = "127.0.0.1:8765"
SLACK_API = "https://slack.com/api/"


class Server(Section):
    """``gpuwhy serve``.

    Attributes:
        listen: address of the HTTP server, ``HOST:PORT``; port 0 takes a free one.
        url: address under which people reach it, for links; None: the one it listens on.
        data: folder for the SQLite store and for captured files; None: the user's data folder.
        tokens: secret: the API tokens, ``NAME=TOKEN,NAME=TOKEN``; policy knows them by name.
        workers: questions answered at the same time.
        timeout: longest that one answer may take (s).
        lease: how long a question or message belongs to a server that gave no sign of life (s).
        drain: longest wait for running answers when the server is stopped (s).
    """

    listen: ListenAddress = DEFAULT_LISTEN
    url: WebAddress | None = None
    data: Path | None = None
    tokens: Tokens = Field(default_factory=dict)
    workers: int = Field(default=8, ge=1, le=256)
    timeout: Seconds = 120.0
    lease: Seconds = 30.0
    drain: Seconds = 25.0

    @property
    def folder(self) -> Path:
        """The folder for what the server keeps."""
        return self.data or user_data_path("gpuwhy")

    @property
    def address(self) -> tuple[str, int]:
        """Host and port to listen on."""
        host, _, port = self.listen.rpartition(":")
        return host.removeprefix("[").removesuffix("]"), int(port)


class Store(Section):
    """Where questions, answers, deliveries and the audit log are kept.

    Attributes:
        url: secret, since it may hold a password: ``postgresql://USER:PASSWORD@HOST/NAME`` or
            ``sqlite:///PATH``; None: a SQLite file in the data folder.
    """

    url: SecretStr | None = None


def _api_base(url: str) -> str:
    return url if url.endswith("/") else url + "/"


class Slack(Section):
    """The connection to a Slack workspace.

    Attributes:
        mode: ``off``; ``socket`` (the server connects to Slack) or ``http`` (Slack calls it).
        bot_token: secret, ``xoxb-…``.
        app_token: secret, ``xapp-…``, for Socket Mode.
        signing_secret: secret by which requests over HTTP are known to be Slack's.
        api_url: base address of Slack's Web API.
        timeout: longest wait for one call of it (s).
    """

    mode: Literal["off", "socket", "http"] = "off"
    bot_token: SecretStr | None = None
    app_token: SecretStr | None = None
    signing_secret: SecretStr | None = None
    api_url: Annotated[WebAddress, AfterValidator(_api_base)] = SLACK_API
    timeout: Seconds = 15.0


class Ssh(Section):
    """How ssh is called for captures; what is left out is left to the user's ssh configuration.

    Attributes:
        user: login on the targets: the user that the profiled programs run as.
        port: port of the ssh server.
        identity: private key file.
        config: ssh configuration file to use instead of the user's.
        options: ``-o`` options, each ``Key=Value``.
    """

    user: str | None = None
    port: int | None = None
    identity: Path | None = None
    config: Path | None = None
    options: Words = ()


class Capture(Section):
    """How profiles are taken; what is left out has the value of `engine.capture`.

    Attributes:
        via: how targets are reached: ``ssh``, ``local``, or ``auto``: ssh but for this machine.
        local_hosts: host names that mean this machine.
        ssh: how ssh is called.
        nsys: Nsight Systems' command on the target, a name or a path.
        importer: ``QdstrmImporter`` on the target.
        target_folder: folder on the target in which a capture makes its own.
        max_duration: longest recording (s).
        max_file_bytes: largest trace that is fetched (bytes).
        decide_within: how long a plan can be approved (s).
    """

    via: Literal["auto", "local", "ssh"] = "auto"
    local_hosts: Words = ()
    ssh: Ssh = Field(default_factory=Ssh)
    nsys: str | None = None
    importer: str | None = None
    target_folder: str | None = None
    max_duration: Seconds = 60.0
    max_file_bytes: int = Field(default=1 << 30, ge=1)
    decide_within: Seconds = 900.0


class Watch(Section):
    """Sweeping on an interval, and announcing incidents.

    Attributes:
        every: how often to look (s); None: not at all.
        prometheus: base address of the server to watch; None: that of ``prometheus.url``.
        where: label matchers that every series must fit.
        channel: id of the Slack channel to announce in; None: nowhere.
        hold: an incident opens when it has lasted so long (s).
        resolve_after: it closes when it has been absent so long (s).
        quiet_period: one that comes back within so long is the same one (s).
        timeout: longest that one look may take (s).
    """

    every: Annotated[Seconds, Field(ge=1)] | None = None
    prometheus: WebAddress | None = None
    where: str = ""
    channel: ChannelId | None = None
    hold: HoldSeconds = 120.0
    resolve_after: HoldSeconds = 300.0
    quiet_period: HoldSeconds = 3600.0
    timeout: Seconds = 120.0


def _known_kinds(who: tuple[str, ...]) -> tuple[str, ...]:
    for one in who:
        kind, colon, name = one.partition(":")
        if one != EVERYONE and not (colon and name and kind in KINDS):
            forms = ", ".join(f"{kind}:NAME" for kind in KINDS)
            raise ValueError(f"{one!r} names nobody; use {forms} or {EVERYONE}")
    return who


class Rule(Section):
    """One rule of the policy; what it leaves out does not matter to it (see `PolicyRule`).

    Attributes:
        effect: ``allow`` or ``deny``; a rule that denies wins over all that allow.
        who: ``user:U…``, ``group:S…``, ``token:NAME``, ``local:LOGIN`` or ``*``.
        channels: Slack channel ids.
        commands: names of commands, and ``approve``.
        targets: patterns of targets, such as ``node-3*``.
    """

    effect: Literal["allow", "deny"]
    who: Annotated[Words, AfterValidator(_known_kinds)] = ()
    channels: Words = ()
    commands: Words = ()
    targets: Words = ()


class PolicySection(Section):
    """Who may use which command on what.

    Attributes:
        default: whether commands that only look are allowed where no rule speaks; captures never
            are.
        rules: a list of rules; as a variable, a JSON list.
    """

    default: Literal["allow", "deny"] = "allow"
    rules: Annotated[tuple[Rule, ...], FromJson] = ()
