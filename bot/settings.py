"""What can be configured, and what makes a value valid.

One class per section of ``gpuwhy.yaml``. The variable of a setting is ``GPUWHY_`` and its path in
capitals: ``prometheus.url`` is ``GPUWHY_PROMETHEUS_URL``. A secret is never written in the file;
its variable, or a file named by the variable with ``_FILE`` (or the key with ``_file``), holds it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, Field, SecretStr

from bot.serversettings import Capture, PolicySection, Server, Slack, Store, Watch
from bot.settingtypes import Headers, Paths, Seconds, Section, WebAddress, Words

# Headers that carry a credential by their meaning; a file must not hold them.
SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie", "x-api-key"})


class Prometheus(Section):
    """The metrics server, and how to be let in.

    Attributes:
        url: base address of a Prometheus-compatible server.
        username: for basic authentication, with ``password``.
        password: secret.
        bearer_token: secret, sent as ``Authorization: Bearer``.
        cert: client certificate (PEM), for mutual TLS, with ``key``.
        key: private key of the certificate (PEM).
        ca: certificates to trust instead of the system's (PEM).
        headers: sent with every request, such as ``X-Scope-OrgID``.
        timeout: longest wait for one answer (s).
        verify: whether the server's certificate is checked.
    """

    url: WebAddress | None = None
    username: str | None = None
    password: SecretStr | None = None
    bearer_token: SecretStr | None = None
    cert: Path | None = None
    key: Path | None = None
    ca: Path | None = None
    headers: Headers = Field(default_factory=dict)
    timeout: Seconds = 30.0
    verify: bool = True


class Loki(Section):
    """A Loki with the kernel logs, and how to be let in; see `Prometheus` for the rest.

    Attributes:
        url: base address of its HTTP API.
        query: LogQL that selects the streams of kernel logs; line filters are added to it.
        host_labels: labels of a stream that name its machine, the first that is there counts.
        limit: lines asked for at once.
        timeout: longest that a question waits for it (s).
    """

    url: WebAddress | None = None
    query: str | None = None
    host_labels: Words = ()
    limit: int = Field(default=1_000, ge=10, le=5_000)
    username: str | None = None
    password: SecretStr | None = None
    bearer_token: SecretStr | None = None
    cert: Path | None = None
    key: Path | None = None
    ca: Path | None = None
    headers: Headers = Field(default_factory=dict)
    timeout: Seconds = 5.0
    verify: bool = True


class Logs(Section):
    """Kernel logs beside Loki.

    Attributes:
        files: log files whose Xids join the readings.
        ssh: whether the logs of the machines asked about are read by ssh (see ``capture.ssh``).
        timeout: longest that a question waits for the machines (s).
    """

    files: Paths = ()
    ssh: bool = False
    timeout: Seconds = 10.0


class Settings(Section):
    """Everything that can be configured.

    Attributes:
        prometheus: the default source.
        loki: where kernel logs are kept; their Xids join the readings.
        logs: kernel logs from files and by ssh.
        overlays: folders with knowledge and rules of the site, laid over those that are shipped.
        sitemap: file with the jobs and racks of the site (`engine.sitemap`).
        window: how far back ``why`` and ``sweep`` look (s).
        server: ``gpuwhy serve``.
        store: where it keeps questions and answers.
        slack: the workspace it serves.
        policy: who may use which command on what.
        capture: how profiles are taken.
        watch: sweeping on an interval.
    """

    prometheus: Prometheus = Field(default_factory=Prometheus)
    loki: Loki = Field(default_factory=Loki)
    logs: Logs = Field(default_factory=Logs)
    overlays: Paths = ()
    sitemap: Path | None = None
    window: Seconds = 900.0
    server: Server = Field(default_factory=Server)
    store: Store = Field(default_factory=Store)
    slack: Slack = Field(default_factory=Slack)
    policy: PolicySection = Field(default_factory=PolicySection)
    capture: Capture = Field(default_factory=Capture)
    watch: Watch = Field(default_factory=Watch)


def setting_paths(model: type[BaseModel] = Settings) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Yield the path of every setting, and whether it is a secret."""
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, Section):
            for path, secret in setting_paths(kind):
                yield (name, *path), secret
        else:
            yield (name,), "SecretStr" in str(kind)
