"""Log sources from settings and options: what `why` and `sweep` ask beside the metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from bot.settings import Loki, Settings
    from engine.sources.logs.loki import LokiSource
    from engine.sources.logs.port import LogSource
    from engine.sources.logs.ssh import SshLogs


def configured(settings: Settings) -> bool:
    """Return whether the settings name any log source."""
    return bool(settings.loki.url or settings.logs.files or settings.logs.ssh)


def open_logs(
    settings: Settings,
    *,
    loki: str | None = None,
    files: Sequence[str] = (),
    ssh: bool = False,
) -> LogSource | None:
    """Return the log sources that settings and options name, as one; None if there is none.

    Args:
        settings: the configuration; what is given beside it adds to it.
        loki: address of a Loki instead of the configured one.
        files: kernel logs; ``-`` is standard input.
        ssh: whether the kernel logs of the machines asked about are read by ssh.

    Raises:
        UsageError: an address is none.
    """
    sources: list[LogSource] = []
    url = loki or settings.loki.url
    if url:
        sources.append(open_loki(url, settings.loki))
    named = (*map(str, settings.logs.files), *files)
    if named:
        from engine.sources.logs.files import LogFiles  # noqa: PLC0415 - only where configured

        sources.append(LogFiles(named))
    if ssh or settings.logs.ssh:
        sources.append(open_ssh(settings))
    if not sources:
        return None
    from engine.sources.logs.several import SeveralLogs  # noqa: PLC0415

    return SeveralLogs(sources)


def open_loki(url: str, settings: Loki, query: str | None = None) -> LokiSource:
    """Return a Loki; its credentials go to the address that they were configured for only."""
    from engine.sources.logs.loki import (  # noqa: PLC0415 - only where configured
        DEFAULT_QUERY,
        HOST_LABELS,
        LokiConfig,
        LokiSource,
    )

    trusted = settings.url is None or _origin(url) == _origin(settings.url)
    secrets = (settings.bearer_token, settings.password)
    token, password = (s.get_secret_value() if s and trusted else None for s in secrets)
    paths = (settings.cert, settings.key) if trusted else (None, None)
    cert, key = (None if path is None else str(path) for path in paths)
    return LokiSource(
        LokiConfig(
            url=url,
            query=query or settings.query or DEFAULT_QUERY,
            host_labels=settings.host_labels or HOST_LABELS,
            limit=settings.limit,
            bearer_token=token,
            username=settings.username if trusted else None,
            password=password,
            cert=cert,
            key=key,
            ca=None if settings.ca is None else str(settings.ca),
            headers=settings.headers if trusted else {},
            timeout_s=settings.timeout,
            verify=settings.verify,
            slow_hint="raise loki.timeout (GPUWHY_LOKI_TIMEOUT), or narrow loki.query",
        )
    )


def open_ssh(settings: Settings) -> SshLogs:
    """Return the reader of kernel logs by ssh; ssh is called as for captures."""
    from engine.capture.settings import SshSettings  # noqa: PLC0415 - only where configured
    from engine.sources.logs.ssh import SshLogs  # noqa: PLC0415

    ssh = settings.capture.ssh
    given = SshSettings(
        user=ssh.user, port=ssh.port, identity=ssh.identity, config=ssh.config, options=ssh.options
    )
    return SshLogs(given, timeout_s=settings.logs.timeout)


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url if "//" in url else f"http://{url}")
    return parts.scheme, parts.netloc.rpartition("@")[2]
