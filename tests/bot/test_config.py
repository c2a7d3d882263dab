from __future__ import annotations

from pathlib import Path

import pytest

from bot import config
from engine.errors import UsageError


@pytest.fixture(autouse=True)
def nowhere(tmp_path, monkeypatch):
    """No configuration of the machine's user comes in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))


@pytest.fixture
def write(tmp_path):
    def writing(text: str, name: str = "gpuwhy.yaml") -> Path:
        file = tmp_path / name
        file.write_text(text, encoding="utf-8")
        return file

    return writing


def refused(file: Path | None = None, **variables: str) -> str:
    with pytest.raises(UsageError) as caught:
        config.load(file, variables)
    assert "\n" not in caught.value.one_line()
    return caught.value.one_line()


def test_without_anything_the_defaults_hold():
    settings = config.load(None, {})
    assert settings.prometheus.url is None
    assert settings.window == 900
    assert settings.overlays == ()


def test_variables_win_over_the_file(write):
    file = write("prometheus:\n  url: http://file:9090\n  timeout: 10s\nwindow: 30m\n")
    settings = config.load(file, {"GPUWHY_PROMETHEUS_URL": "http://variable:9090"})
    assert settings.prometheus.url == "http://variable:9090"
    assert settings.prometheus.timeout == 10
    assert settings.window == 1800


def test_an_empty_variable_is_not_set(write):
    file = write("prometheus:\n  url: http://file:9090\n")
    assert config.load(file, {"GPUWHY_PROMETHEUS_URL": ""}).prometheus.url == "http://file:9090"


def test_every_setting_has_a_variable(tmp_path):
    settings = config.load(
        None,
        {
            "GPUWHY_PROMETHEUS_USERNAME": "ann",
            "GPUWHY_PROMETHEUS_PASSWORD": "pw",
            "GPUWHY_PROMETHEUS_CERT": "/c.pem",
            "GPUWHY_PROMETHEUS_KEY": "/k.pem",
            "GPUWHY_PROMETHEUS_CA": "/ca.pem",
            "GPUWHY_PROMETHEUS_HEADERS": "X-Scope-OrgID=team-a, X-Other=b=c",
            "GPUWHY_PROMETHEUS_TIMEOUT": "5s",
            "GPUWHY_PROMETHEUS_VERIFY": "false",
            "GPUWHY_OVERLAYS": f"{tmp_path}:/other",
            "GPUWHY_WINDOW": "1h",
        },
    )
    server = settings.prometheus
    assert server.password.get_secret_value() == "pw"
    assert server.headers == {"X-Scope-OrgID": "team-a", "X-Other": "b=c"}
    assert (server.cert, server.key, server.ca) == (Path("/c.pem"), Path("/k.pem"), Path("/ca.pem"))
    assert (server.timeout, server.verify, settings.window) == (5, False, 3600)
    assert settings.overlays == (tmp_path, Path("/other"))


def test_headers_may_be_a_json_object():
    variables = {"GPUWHY_PROMETHEUS_HEADERS": '{"A": "x,y=z"}'}
    assert config.load(None, variables).prometheus.headers == {"A": "x,y=z"}


def test_files_are_looked_for_in_order(write, tmp_path):
    assert config.find_file(None, {}) is None
    personal = tmp_path / "home" / "gpuwhy" / "gpuwhy.yaml"
    personal.parent.mkdir(parents=True)
    personal.write_text("window: 1h\n")
    assert config.find_file(None, {}) == personal
    write("window: 2h\n")
    assert config.find_file(None, {}) == Path("gpuwhy.yaml")
    named = write("window: 3h\n", "named.yaml")
    assert config.find_file(None, {"GPUWHY_CONFIG": str(named)}) == named
    given = write("window: 4h\n", "given.yaml")
    assert config.load(given, {"GPUWHY_CONFIG": str(named)}).window == 14400


def test_a_named_file_must_exist():
    assert "--config" in refused(Path("missing.yaml"))
    assert "GPUWHY_CONFIG" in refused(GPUWHY_CONFIG="missing.yaml")


def test_an_empty_file_is_fine(write):
    assert config.load(write("# nothing yet\n"), {}).window == 900


def test_unknown_keys_are_named_with_place_and_nearest_name(write):
    said = refused(write("prometheus:\n  ulr: http://a\n"))
    assert "gpuwhy.yaml:2:" in said
    assert "unknown setting prometheus.ulr; did you mean 'prometheus.url'?" in said
    assert "did you mean 'prometheus'?" in refused(write("promtheus:\n  url: http://a\n"))


def test_unknown_variables_are_named_with_the_nearest():
    said = refused(GPUWHY_PROMETHEUS_ULR="http://a")
    assert "unknown variable GPUWHY_PROMETHEUS_ULR; did you mean 'GPUWHY_PROMETHEUS_URL'?" in said


def test_variables_that_kubernetes_sets_are_passed_over():
    config.load(
        None,
        {
            "GPUWHY_SERVICE_HOST": "10.0.0.1",
            "GPUWHY_SERVICE_PORT_HTTP": "80",
            "GPUWHY_PORT": "tcp://10.0.0.1:80",
            "GPUWHY_PORT_80_TCP_ADDR": "10.0.0.1",
            "GPUWHY_PROMETHEUS_PORT_9090_TCP": "tcp://10.0.0.1:9090",
            "GPUWHY_DEBUG": "1",
        },
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prometheus:\n  url: prom\n", "2:8: prometheus.url: must be a web address"),
        ("prometheus:\n  timeout: soon\n", "cannot read 'soon' as a length of time"),
        ("prometheus:\n  timeout: 0\n", "greater than 0"),
        ("prometheus:\n  headers:\n    'a b': c\n", "'a b' is no header name"),
        ("prometheus: 5\n", "1:13: prometheus:"),
        ("window: [1]\n", "window:"),
        ("window:\t15m\n\tx: 1\n", "tab"),
        ("window: 15m\nwindow: 20m\n", "written twice"),
        ("- a\n", "mapping"),
    ],
)
def test_wrong_values_are_named_with_their_place(write, text, said):
    shown = refused(write(text))
    assert said in shown
    assert "gpuwhy.yaml:" in shown


def test_wrong_values_in_variables_name_the_variable():
    assert "GPUWHY_WINDOW: window: cannot read" in refused(GPUWHY_WINDOW="soon")


def test_a_file_that_is_no_text_is_refused(write, tmp_path):
    file = tmp_path / "gpuwhy.yaml"
    file.write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8" in refused(file)
    file.write_bytes(b"#" * (1 << 21))
    assert "larger than 1 MiB" in refused(file)


@pytest.mark.parametrize(
    "text",
    [
        "prometheus:\n  password: hunter2\n",
        "prometheus:\n  bearer_token: hunter2\n",
        "prometheus:\n  headers:\n    authorization: Bearer hunter2\n",
        "prometheus:\n  url: http://ann:hunter2@prom:9090\n",
    ],
)
def test_secrets_in_the_file_are_refused_and_not_repeated(write, text):
    said = refused(write(text))
    assert "GPUWHY_PROMETHEUS_" in said
    assert "hunter2" not in said


def test_secrets_come_from_files(write, tmp_path):
    token = tmp_path / "token"
    token.write_text("s3cret\n")
    by_variable = config.load(None, {"GPUWHY_PROMETHEUS_BEARER_TOKEN_FILE": str(token)})
    assert by_variable.prometheus.bearer_token.get_secret_value() == "s3cret"
    file = write(f"prometheus:\n  bearer_token_file: {token}\n")
    assert config.load(file, {}).prometheus.bearer_token.get_secret_value() == "s3cret"
    both = config.load(file, {"GPUWHY_PROMETHEUS_BEARER_TOKEN": "wins"})
    assert both.prometheus.bearer_token.get_secret_value() == "wins"
    assert "s3cret" not in repr(by_variable)


def test_secret_files_that_cannot_serve_are_named(tmp_path):
    name = "GPUWHY_PROMETHEUS_PASSWORD_FILE"
    assert "No such file" in refused(**{name: str(tmp_path / "missing")})
    file = tmp_path / "secret"
    for content in (b"", b"two\nlines", b"\xff", b"x" * 70000):
        file.write_bytes(content)
        assert name in refused(**{name: str(file)})
    file.write_text("pw")
    both = {name: str(file), "GPUWHY_PROMETHEUS_PASSWORD": "other"}
    assert "are both set" in refused(**both)


def test_overlays_alone_load_nothing_heavy_when_nothing_is_configured(monkeypatch):
    monkeypatch.setattr(config, "load", None)
    assert config.overlays(None, {"GPUWHY_WINDOW": "5m"}) == ()


def test_a_folder_that_may_not_be_entered_holds_no_configuration(monkeypatch):
    def forbidden(_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "is_file", forbidden)
    assert config.find_file(None, {}) is None
    with pytest.raises(UsageError, match=r"^configuration file x\.yaml: Permission denied; check"):
        config.find_file(None, {"GPUWHY_CONFIG": "x.yaml"})
