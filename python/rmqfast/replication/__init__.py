"""Copies of a broker's log: the HA port that serves the log, and followers that copy it.

Source: `HAService`, `HAClient`.
"""

from rmqfast.replication.following import EndKind, FollowEnd, Following, FollowProgress, ServedLog

__all__ = ["EndKind", "FollowEnd", "FollowProgress", "Following", "ServedLog"]
