"""Answers how far the delayed messages were delivered.

Source: `AdminBrokerProcessor.getAllDelayOffset`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rmqfast.remoting import Processor, Request, RequestCode, Response
from rmqfast.remoting.fastjson import encode


class DelayOffsetProcessor:
    """Request 45."""

    def __init__(self, offsets: Callable[[], Mapping[int, int]]) -> None:
        self._offsets = offsets

    def processors(self) -> dict[int, Processor]:
        """Who answers, by request code."""
        return {RequestCode.GET_ALL_DELAY_OFFSET: self.get_all_delay_offset}

    def get_all_delay_offset(self, _request: Request) -> Response:
        """45: the next offset to deliver, by delay level."""
        return Response(body=encode({"offsetTable": dict(self._offsets())}))
