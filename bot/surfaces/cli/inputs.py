"""From options and settings to what commands work on: a catalogue, a source, a window."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bot import config
from bot.surfaces.cli.output import warn
from engine.errors import UsageError

if TYPE_CHECKING:
    from bot.settings import Prometheus, Settings
    from bot.surfaces.cli.options import Common, LogOptions, SourceOptions
    from engine.catalogue.types import Catalogue
    from engine.diagnosis import Engine
    from engine.sources.httpoptions import HttpOptions
    from engine.sources.logs.port import LogSource
    from engine.sources.port import Source

_SLOW = (
    "raise --timeout (GPUWHY_PROMETHEUS_TIMEOUT, prometheus.timeout in the configuration), "
    "or ask about less"
)
OnProgress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Setup:
    """What a diagnosis needs."""

    engine: Engine
    settings: Settings
    source: Source
    logs: LogSource | None = None

    async def aclose(self) -> None:
        """Close what is asked."""
        await self.source.aclose()
        if self.logs is not None:
            await self.logs.aclose()


def overlays(common: Common) -> tuple[Path, ...]:
    """Return the overlay folders, configured ones first."""
    return (*config.overlays(common.config, os.environ), *common.overlay)


def load(common: Common, *, rules: bool = True) -> Catalogue:
    """Load knowledge and rules; what had to be left out is told on stderr, a line each.

    Raises:
        UsageError: an overlay is no folder, or has neither ``knowledge/`` nor ``rules/``.
    """
    from engine.catalogue import load_catalogue  # noqa: PLC0415 - so that --help starts fast

    catalogue = load_catalogue(overlays(common), rules=rules, strict=False)
    warn(catalogue.left_out)
    return catalogue


def prepare(
    common: Common,
    options: SourceOptions,
    on_progress: OnProgress,
    logs: LogOptions | None = None,
) -> Setup:
    """Read the settings, choose the source and load the rules.

    Raises:
        UsageError: no source, or more than one; or the configuration is wrong.
        CatalogueError: knowledge or rules do not load.
    """
    settings = config.load(common.config, os.environ)
    source = open_source(options, settings, on_progress)
    if "-" in options.metrics and logs is not None and "-" in logs.kernel_log:
        raise UsageError(
            "--metrics - and --kernel-log - both read standard input", hint="give a file for one"
        )
    engine = make_engine((*settings.overlays, *common.overlay), settings.sitemap)
    return Setup(engine, settings, source, make_logs(settings, logs))


def make_logs(settings: Settings, options: LogOptions | None) -> LogSource | None:
    """Return the log sources that options and settings name; None, as a rule, for none."""
    from bot.logsources import configured, open_logs  # noqa: PLC0415 - only where configured

    if options is None or not options.given:
        return open_logs(settings) if configured(settings) else None
    return open_logs(settings, loki=options.loki, files=options.kernel_log, ssh=options.ssh_dmesg)


def make_engine(folders: tuple[Path, ...], sitemap: Path | None = None) -> Engine:
    """Load knowledge and rules, and compile them; ``sitemap`` is the map of the site, if any."""
    from engine.catalogue import load_catalogue  # noqa: PLC0415 - heavy, decode does without
    from engine.diagnosis import Engine  # noqa: PLC0415
    from engine.sitemap import SiteFile  # noqa: PLC0415

    site = SiteFile(sitemap) if sitemap else None
    engine = Engine(load_catalogue(folders, strict=False), site=site)
    gc.freeze()  # the rules stay as long as the process: no collection need look at them again
    return engine


def open_source(options: SourceOptions, settings: Settings, on_progress: OnProgress) -> Source:
    """Return the one source that options and settings name; nothing is contacted yet."""
    given = {
        "--prometheus": options.prometheus,
        "--metrics": options.metrics,
        "--scrape": options.scrape,
    }
    named = [name for name, value in given.items() if value]
    if len(named) > 1:
        raise UsageError(f"{' and '.join(named)} were both given", hint="give one source")
    if options.metrics:
        from engine.sources.exposition import FileSource  # noqa: PLC0415 - numpy

        return FileSource(options.metrics, on_progress)
    if options.scrape:
        from engine.sources.scrape import ScrapeSource  # noqa: PLC0415 - aiohttp

        return ScrapeSource(options.scrape, options=_patient(options), on_progress=on_progress)
    url = options.prometheus or settings.prometheus.url
    if url:
        return _prometheus(url, settings.prometheus, options.timeout)
    raise UsageError(
        "no source of readings",
        hint="give --prometheus URL, --metrics FILE or --scrape URL, or set GPUWHY_PROMETHEUS_URL",
        code="no_source",
    )


def _patient(options: SourceOptions) -> HttpOptions:
    """Return how exporters are asked."""
    from engine.sources.httpoptions import HttpOptions  # noqa: PLC0415
    from engine.sources.scrape import TIMEOUT_S  # noqa: PLC0415

    return HttpOptions(
        timeout_s=options.timeout or TIMEOUT_S,
        slow_hint="raise --timeout, or look why the exporter is slow",
    )


def _prometheus(url: str, settings: Prometheus, timeout_s: float | None) -> Source:
    from engine.sources.prometheus import PrometheusConfig, PrometheusSource  # noqa: PLC0415

    # Credentials belong to the server they were configured for; another one must not see them.
    trusted = settings.url is None or _origin(url) == _origin(settings.url)
    secrets = (settings.bearer_token, settings.password)
    token, password = (s.get_secret_value() if s and trusted else None for s in secrets)
    return PrometheusSource(
        PrometheusConfig(
            url=url,
            bearer_token=token,
            username=settings.username if trusted else None,
            password=password,
            cert=_text(settings.cert) if trusted else None,
            key=_text(settings.key) if trusted else None,
            ca=_text(settings.ca),
            headers=settings.headers if trusted else {},
            timeout_s=timeout_s or settings.timeout,
            verify=settings.verify,
            slow_hint=_SLOW,
        )
    )


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url if "//" in url else f"http://{url}")
    return parts.scheme, parts.netloc.rpartition("@")[2]
