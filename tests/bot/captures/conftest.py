from tests.bot.delivery.conftest import slack  # noqa: F401 - a fixture
