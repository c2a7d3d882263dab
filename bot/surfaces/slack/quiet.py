"""Keep secrets out of the log: what Slack's libraries would write there is redacted first.

Bolt logs whole requests, with their response URLs, when a signature is wrong, and the Socket Mode
client logs addresses with their tickets when it cannot connect.
"""

from __future__ import annotations

import logging
import re

_SECRET = re.compile(
    r"xox[a-z]-[\w-]+"
    r"|xapp-[\w-]+"
    r"|(?<=ticket=)[\w%.-]+"
    r"|https?://[^\s'\"]*/(?:commands|actions|app|response)/[^\s'\"]+"
)


class Redacting(logging.Filter):
    """Replaces tokens, tickets and response URLs, and drops tracebacks, which may hold them."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite a record; all are let through."""
        said = redacted(record.getMessage())
        if record.exc_info and record.exc_info[0] is not None:
            said = f"{said} [{record.exc_info[0].__name__}]"
        record.msg, record.args, record.exc_info, record.exc_text = said, (), None, None
        return True


def redacted(text: str) -> str:
    """Return text with everything that lets its holder in replaced."""
    return _SECRET.sub("[secret]", text)


def quiet_logger() -> logging.Logger:
    """Return the logger to give to Bolt: warnings and worse, redacted.

    Bolt copies level and filters to the loggers of its parts.
    """
    logger = logging.getLogger("slack_bolt.gpuwhy")
    for one in (logger, logging.getLogger("slack_bolt"), logging.getLogger("slack_sdk")):
        one.setLevel(logging.WARNING)
        if not any(isinstance(known, Redacting) for known in one.filters):
            one.addFilter(Redacting())
    return logger
