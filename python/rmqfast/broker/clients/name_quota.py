"""Limits how many topics and groups a client may create by using them, since they are stored forever."""

from __future__ import annotations

from collections.abc import Callable

from rmqfast.errors import ResponseError
from rmqfast.remoting import Channel, ResponseCode
from rmqfast.remoting.rate_limit import TokenBucket
from rmqfast.system import monotonic
from rmqfast.threads import new_lock

#: Budget of a host, as a multiple of a connection's budget.
_HOST = 10
#: Limit of stored budgets; beyond it, full budgets are dropped.
_HOSTS = 10_000


class NameQuota:
    """Budgets for new names, per connection and per host. They refill over time."""

    def __init__(self, burst: int, per_second: int, clock: Callable[[], float] = monotonic) -> None:
        self._burst = burst
        self._per_second = per_second
        self._clock = clock
        self._lock = new_lock()
        self._budgets: dict[Channel | str, TokenBucket] = {}

    def take(self, channel: Channel, count: int = 1) -> None:
        """Takes `count` tokens from the budgets of a connection and of its host. Refuses if either has too few."""
        if count == 0:
            return
        # The host's budget stops a client that opens ever more connections.
        host = channel.remote_address.rpartition(":")[0]
        now = self._clock()
        with self._lock:
            if len(self._budgets) > _HOSTS:
                self._budgets = {key: bucket for key, bucket in self._budgets.items() if not bucket.is_full(now=now)}
            own, hosts = self._budget(channel, 1, now), self._budget(host, _HOST, now)
            # Check both budgets before spending from one of them.
            for scope, budget, times in (("connection", own, 1), ("host", hosts, _HOST)):
                if not budget.has(count, now=now):
                    limits = f"{self._burst * times} at once and {self._per_second * times} a second"
                    remark = (
                        f"[QUOTA] new topics and groups of a {scope}: expected at most {limits}, got {count} more "
                        "(newNamesBurst, newNamesPerSecond)"
                    )
                    raise ResponseError(ResponseCode.SYSTEM_BUSY, remark)
            own.take(count, now=now)
            hosts.take(count, now=now)

    def forget(self, channel: Channel) -> None:
        """Drops the budget of a closed connection. The budget of its host stays."""
        with self._lock:
            self._budgets.pop(channel, None)

    def _budget(self, key: Channel | str, times: int, now: float) -> TokenBucket:
        budget = self._budgets.get(key)
        if budget is None:
            budget = self._budgets[key] = TokenBucket(self._burst * times, self._per_second * times, now=now)
        return budget
