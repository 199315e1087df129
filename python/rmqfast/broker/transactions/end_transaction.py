"""Answers END_TRANSACTION and RESUME_CHECK_HALF_MESSAGE.

Source: RocketMQ's `EndTransactionProcessor`, `AdminBrokerProcessor`.
"""

from __future__ import annotations

from rmqfast._native import parse_message_id
from rmqfast.broker.messages.appending import status_of
from rmqfast.broker.messages.stored_message import TRANSACTION_COMMIT, TRANSACTION_ROLLBACK, StoredMessage, message_at
from rmqfast.broker.transactions.half_messages import HalfMessages, has_target
from rmqfast.errors import FlushTimeoutError, ResponseError, RmqError
from rmqfast.logs import logger_of
from rmqfast.remoting import Header, Processor, Request, RequestCode, Response, ResponseCode
from rmqfast.remoting.rate_limit import limited
from rmqfast.store import LiveStore

_log = limited(logger_of(__name__))

_PUT_BACK_FAILED = "Put message back to RMQ_SYS_TRANS_HALF_TOPIC failed."
_PUT_BACK_RAISED = "Exception was thrown when putting message back to RMQ_SYS_TRANS_HALF_TOPIC."


class EndTransactionProcessor:
    def __init__(self, half: HalfMessages, live: LiveStore, *, max_message_size: int = 4 << 20) -> None:
        self._half = half
        self._live = live
        self._max_message_size = max_message_size

    def processors(self) -> dict[int, Processor]:
        return {
            RequestCode.END_TRANSACTION: self.end_transaction,
            RequestCode.RESUME_CHECK_HALF_MESSAGE: self.resume_check_half_message,
        }

    def end_transaction(self, request: Request) -> Response | None:
        """Commits a half message or rolls it back. A transaction in an unknown state gets no answer."""
        header = Header(request.ext_fields)
        end = header.number("commitOrRollback")
        group, queue_offset = header.text("producerGroup"), header.number("tranStateTableOffset")
        physical_offset = header.number("commitLogOffset")
        if end not in (TRANSACTION_COMMIT, TRANSACTION_ROLLBACK):
            _log.info("transaction of %s at %d is pending: %s", group, physical_offset, request.remark)
            return None
        half = self._find_half(group, queue_offset, physical_offset)
        if end == TRANSACTION_COMMIT:
            self._commit(half)
        # After the commit: a kill in between commits the message twice, but never loses it.
        self._half.remove(half)
        return Response()

    def resume_check_half_message(self, request: Request) -> Response:
        """Puts back a half message that was given up, so that its producer is asked again."""
        place = parse_message_id(request.ext_fields.get("msgId", ""))
        message = None if place is None else message_at(self._live, place[2])
        if message is None or not has_target(message):
            raise ResponseError(ResponseCode.SYSTEM_ERROR, _PUT_BACK_RAISED)
        if not self._half.resume(message):
            raise ResponseError(ResponseCode.SYSTEM_ERROR, _PUT_BACK_FAILED)
        return Response()

    def _find_half(self, group: str, queue_offset: int, physical_offset: int) -> StoredMessage:
        """Returns the half message of a request. Raises `ResponseError` if there is none of this group and offset."""
        half = self._half.find(physical_offset)
        wrong = None
        if half is None:
            wrong = "Find prepared transaction message failed"
        elif half.properties.get("PGROUP") != group:
            wrong = "The producer group wrong"
        elif half.queue_offset != queue_offset:
            wrong = "The transaction state table offset wrong"
        if half is None or wrong is not None:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, wrong or "")
        return half

    def _commit(self, half: StoredMessage) -> None:
        try:
            self._half.commit(half)
        except FlushTimeoutError as error:
            _log.warning("a committed message is stored, but not yet on the disk: %s", error)
        except RmqError as error:
            raise self._refusal(status_of(error)) from error

    def _refusal(self, status: str) -> ResponseError:
        illegal = (
            "The message is illegal, maybe msg body or properties length not matched. msg body length limit"
            f" {self._max_message_size}B, msg properties length limit 32KB."
        )
        refusals = {
            "CREATE_MAPEDFILE_FAILED": (ResponseCode.SYSTEM_ERROR, "Create mapped file failed."),
            "MESSAGE_ILLEGAL": (ResponseCode.MESSAGE_ILLEGAL, illegal),
            "PROPERTIES_SIZE_EXCEEDED": (ResponseCode.MESSAGE_ILLEGAL, illegal),
            "SERVICE_NOT_AVAILABLE": (ResponseCode.SERVICE_NOT_AVAILABLE, "Service not available now."),
            "OS_PAGECACHE_BUSY": (ResponseCode.SYSTEM_ERROR, "OS page cache busy, please try another machine"),
            "UNKNOWN_ERROR": (ResponseCode.SYSTEM_ERROR, "UNKNOWN_ERROR"),
        }
        code, remark = refusals.get(status, (ResponseCode.SYSTEM_ERROR, "UNKNOWN_ERROR DEFAULT"))
        return ResponseError(code, remark)
