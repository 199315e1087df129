"""Web pages about a cluster. Needs the extra `dashboard`."""

from rmqfast.dashboard.dashboard import Dashboard

__all__ = ["Dashboard"]
