"""Ways to run commands on the machine of a target."""

from __future__ import annotations

from engine.capture.executors.local import LocalExecutor
from engine.capture.executors.ssh import SshExecutor, checked_host, ssh_executor
from engine.capture.ports import Executor
from engine.capture.settings import CaptureSettings, Via

__all__ = ["LocalExecutor", "SshExecutor", "checked_host", "executor_for", "ssh_executor"]


def executor_for(host: str, settings: CaptureSettings) -> Executor:
    """Return the executor that reaches a host.

    Raises:
        UsageError: the host name is not usable.
    """
    name = checked_host(host)
    local = settings.via is Via.LOCAL or (
        settings.via is Via.AUTO and name.lower() in {own.lower() for own in settings.local_hosts}
    )
    return LocalExecutor(host) if local else ssh_executor(host, settings.ssh)
