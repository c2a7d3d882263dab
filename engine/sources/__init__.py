"""Where readings come from: a metrics server, metrics files, or exporters read directly.

Sources yield raw samples and label sets. What a metric means is decided elsewhere.
"""

from engine.sources.exposition import FileSource
from engine.sources.httpoptions import HttpOptions
from engine.sources.port import Source
from engine.sources.prometheus import PrometheusConfig, PrometheusSource
from engine.sources.scrape import ScrapeSource

__all__ = [
    "FileSource",
    "HttpOptions",
    "PrometheusConfig",
    "PrometheusSource",
    "ScrapeSource",
    "Source",
]
