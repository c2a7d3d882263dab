from tests.bot.delivery.conftest import slack, store  # noqa: F401 - fixtures
