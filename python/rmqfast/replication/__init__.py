"""Replication of the log: the HA port of a broker, and copies that follow it.

Source: `HAService`, `HAClient`.
"""

from rmqfast.replication.following import EndKind, FollowEnd, Following, FollowProgress
from rmqfast.replication.served_log import ServedLog

__all__ = ["EndKind", "FollowEnd", "FollowProgress", "Following", "ServedLog"]
