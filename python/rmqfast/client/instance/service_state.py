"""Where a client is in its life.

Source: `ServiceState`.
"""

from __future__ import annotations

from enum import StrEnum


class ServiceState(StrEnum):
    """Where a client is in its life: it is started once, and ends once.

    Source: `ServiceState`.
    """

    CREATE_JUST = "CREATE_JUST"
    RUNNING = "RUNNING"
    SHUTDOWN_ALREADY = "SHUTDOWN_ALREADY"
    START_FAILED = "START_FAILED"
