"""The log over the wire: where a broker serves it, and a copy that follows it.

Source: `HAService`, `HAClient`.
"""

from rmqfast.replication.following import EndKind, FollowEnd, Following, FollowProgress
from rmqfast.replication.served_log import ServedLog

__all__ = ["EndKind", "FollowEnd", "FollowProgress", "Following", "ServedLog"]
