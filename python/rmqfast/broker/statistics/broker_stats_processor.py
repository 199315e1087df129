"""Answers what a statistic says.

Source: `AdminBrokerProcessor.viewBrokerStatsData`.
"""

from __future__ import annotations

from rmqfast.broker.statistics.broker_stats import BrokerStats
from rmqfast.errors import ResponseError
from rmqfast.remoting import Header, Processor, Request, RequestCode, Response, ResponseCode
from rmqfast.remoting.fastjson import encode


class BrokerStatsProcessor:
    """Request 315."""

    def __init__(self, stats: BrokerStats) -> None:
        self._stats = stats

    def processors(self) -> dict[int, Processor]:
        """Who answers, by request code."""
        return {RequestCode.VIEW_BROKER_STATS_DATA: self.view_broker_stats_data}

    def view_broker_stats_data(self, request: Request) -> Response:
        """315: what a statistic says of the last minute, hour and day.

        Raises:
            ResponseError: 1 for one that was never counted.
        """
        header = Header(request.ext_fields)
        name, key = header.text("statsName"), header.text("statsKey")
        item = self._stats.item(name, key)
        if item is None:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, f"The stats <{name}> <{key}> not exist")
        data = {"statsMinute": item.minute, "statsHour": item.hour, "statsDay": item.day}
        return Response(body=encode({period: snapshot.to_json() for period, snapshot in data.items()}))
