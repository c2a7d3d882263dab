"""Where events of kernel logs come from: Loki, log files, machines by ssh.

The Xid gauge of exporters holds the last code and misses repeats; logs hold every event with its
time. A log source yields events only, found by the same code that reads pasted logs. The sources
are in modules of their own (`loki`, `files`, `ssh`, `several`), loaded where they are configured.
"""

from engine.sources.logs.port import LogEvent, LogSource, Unread

__all__ = ["LogEvent", "LogSource", "Unread"]
