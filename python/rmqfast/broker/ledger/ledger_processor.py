"""Answers request 40900 of rmqfast's tools: who was handed a message. No broker of RocketMQ knows it."""

from __future__ import annotations

from rmqfast.broker.ledger.ledger import PullLedger
from rmqfast.remoting import Header, Processor, Request, RequestCode, Response
from rmqfast.remoting.fastjson import encode


class LedgerProcessor:
    def __init__(self, ledger: PullLedger) -> None:
        self._ledger = ledger

    def processors(self) -> dict[int, Processor]:
        return {RequestCode.GET_PULL_LEDGER: self.ledger}

    def ledger(self, request: Request) -> Response:
        """Returns the rows that cover an offset: of one group, or of all."""
        header = Header(request.ext_fields)
        answer = self._ledger.answer(
            header.text("topic"), header.number("queueId"), header.number("offset"), header.optional_text("group")
        )
        return Response(body=encode(answer))
