"""Finds the processor of a request, and turns the errors of processors into answers.

Source: `NettyRemotingAbstract.processRequestCommand`, `AdminBrokerProcessor.getUnknownCmdResponse`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from rmqfast.errors import ResponseError
from rmqfast.logs import logger_of
from rmqfast.remoting.codes import ResponseCode
from rmqfast.remoting.rate_limit import limited
from rmqfast.remoting.request import Request, Response

_log = limited(logger_of(__name__))


@dataclass(frozen=True, slots=True)
class Later:
    """An answer that `work` computes later, for example after a request to a client."""

    work: Callable[[], Response]


@dataclass(frozen=True, slots=True)
class Again:
    """Returned if the data plane can now process the request, because an obstacle was removed.

    `target` is the topic and queue that replace the message's; `None` keeps these.
    """

    target: tuple[str, int] | None = None


#: Answers a request; `None` sends no answer. A raised `ResponseError` is sent as an answer.
Processor: TypeAlias = Callable[[Request], Response | Later | Again | None]


def process(processors: Mapping[int, Processor], request: Request) -> Response | Later | Again | None:
    """Returns the answer of the request's processor. An unknown request code is answered with response code 3."""
    processor = processors.get(request.code)
    if processor is None:
        # The leading blank is RocketMQ's.
        return Response(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, f" request type {request.code} not supported")
    try:
        return processor(request)
    except ResponseError as error:
        return Response(error.code, error.remark)
    except Exception as error:  # noqa: BLE001  # a defect in one processor must not end the server
        return error_response(request, error)


def error_response(request: Request, error: Exception) -> Response:
    """Logs an error of a processor, and returns it as an answer."""
    _log.error("request %d from %s failed", request.code, request.channel.remote_address, exc_info=error)
    # As in `RemotingHelper.exceptionSimpleDesc`, but without a stack frame that shows file names to strangers.
    return Response(ResponseCode.SYSTEM_ERROR, f"{type(error).__name__}: {error}")


#: Raises `ResponseError` for a forbidden request.
Check = Callable[[Request], None]


def all_of(*checks: Check | None) -> Check | None:
    """Returns a check that calls the given checks in order. `None` if there are no checks."""
    present = [check for check in checks if check is not None]

    def check(request: Request) -> None:
        for each in present:
            each(request)

    return check if present else None
