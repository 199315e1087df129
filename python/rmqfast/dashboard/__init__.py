"""Web pages about a cluster. Needs the extra `dashboard`."""

from rmqfast.dashboard.change_log import ChangeEntry
from rmqfast.dashboard.dashboard import Dashboard

__all__ = ["ChangeEntry", "Dashboard"]
