"""Whether a request over HTTP is Slack's: signed with the shared secret, and not an old one.

Scheme: https://docs.slack.dev/authentication/verifying-requests-from-slack
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from slack_sdk.signature import Clock, SignatureVerifier

_MOMENT = re.compile(r"\d{1,12}", re.ASCII)
_SIGNATURE = re.compile(r"v0=[0-9a-f]{64}", re.ASCII)


class _GivenClock(Clock):
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now

    def now(self) -> float:
        return self._now()


class Signature:
    """Checks signatures; a request older than five minutes is not believed.

    Args:
        secret: the app's signing secret; without one nothing is believed.
        now: Unix seconds.
    """

    def __init__(self, secret: str | None, now: Callable[[], float] = time.time) -> None:
        self._verifier = SignatureVerifier(secret, _GivenClock(now)) if secret else None

    def is_valid(self, body: str, timestamp: str | None, signature: str | None) -> bool:
        """Return whether the headers ``X-Slack-Request-Timestamp`` and ``-Signature`` fit."""
        if self._verifier is None or not timestamp or not signature:
            return False
        # The verifier raises on headers of another form.
        if not (_MOMENT.fullmatch(timestamp) and _SIGNATURE.fullmatch(signature)):
            return False
        return self._verifier.is_valid(body, timestamp, signature)
