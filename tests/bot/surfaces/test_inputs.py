from __future__ import annotations

import pytest

from bot.settings import Prometheus, Settings
from bot.surfaces.cli.inputs import open_source
from bot.surfaces.cli.options import SourceOptions
from engine.errors import UsageError
from engine.sources.exposition import FileSource
from engine.sources.scrape import ScrapeSource

SECRETS = {
    "username": "ann",
    "password": "hunter2",
    "headers": {"X-Scope-OrgID": "team-a"},
}


def source(settings: Settings | None = None, **given):
    options = SourceOptions(**{"prometheus": None, "metrics": (), "scrape": (), **given})
    return open_source(options, settings or Settings(), lambda *_: None)


def headers(settings: Settings, **given) -> dict[str, str]:
    return source(settings, **given)._config.request_headers()


def test_the_option_chooses_the_source():
    assert isinstance(source(metrics=("a.prom",)), FileSource)
    assert isinstance(source(scrape=("http://node-1:9400",)), ScrapeSource)
    assert source(prometheus="http://prom:9090").name == "http://prom:9090"


def test_the_configured_server_is_the_default_and_an_option_wins():
    settings = Settings(prometheus=Prometheus(url="http://configured:9090"))
    assert source(settings).name == "http://configured:9090"
    assert source(settings, prometheus="http://given:9090").name == "http://given:9090"
    assert isinstance(source(settings, metrics=("a",)), FileSource)


def test_the_time_out_is_the_one_given_or_configured_and_its_name_is_told():
    settings = Settings(prometheus=Prometheus(url="http://prom:9090", timeout=7))
    assert source(settings)._config.timeout_s == 7
    patient = source(settings, timeout=90.0)
    assert patient._config.timeout_s == 90
    for name in ("--timeout", "GPUWHY_PROMETHEUS_TIMEOUT", "prometheus.timeout"):
        assert name in patient._config.slow_hint
    scraped = source(scrape=("http://node-1:9400",), timeout=20.0)
    assert scraped._web.options.timeout_s == 20


def test_no_source_and_two_sources_are_refused():
    with pytest.raises(UsageError, match="no source of readings"):
        source()
    with pytest.raises(UsageError, match="--prometheus and --metrics were both given"):
        source(prometheus="http://a", metrics=("b",))


def test_credentials_go_to_the_server_they_are_configured_for():
    settings = Settings(prometheus=Prometheus(url="https://prom:9090/x", **SECRETS))
    for given in ({}, {"prometheus": "https://prom:9090/other"}):
        sent = headers(settings, **given)
        assert sent["X-Scope-OrgID"] == "team-a"
        assert sent["Authorization"].startswith("Basic ")


@pytest.mark.parametrize("url", ["https://evil:9090", "http://prom:9090", "https://prom:9091"])
def test_credentials_do_not_go_to_another_server(url):
    settings = Settings(prometheus=Prometheus(url="https://prom:9090", **SECRETS))
    assert headers(settings, prometheus=url) == {}


def test_credentials_without_a_configured_server_go_to_the_one_given():
    settings = Settings(prometheus=Prometheus(bearer_token="t0ken"))
    assert headers(settings, prometheus="https://prom")["Authorization"] == "Bearer t0ken"
