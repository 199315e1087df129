"""Takes requests from a mailbox and answers them with processors, on threads.

Source: `NettyRemotingAbstract.processRequestCommand`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rmqfast._native import Call, Mailbox
from rmqfast._native import Channel as NativeChannel
from rmqfast.errors import ResponseError
from rmqfast.logs import logger_of
from rmqfast.remoting.codes import ResponseCode
from rmqfast.remoting.processor import Again, Later, Processor, error_response, process
from rmqfast.remoting.rate_limit import limited
from rmqfast.remoting.request import Channel, Request, Response
from rmqfast.system import monotonic
from rmqfast.threads import is_current, new_semaphore, new_thread

_log = limited(logger_of(__name__))

#: Seconds that a worker waits before it checks whether the mailbox is closed.
_WAIT = 1.0
#: Limit of slow answers in progress, since each has a thread of its own.
LATER = 256
_OVERLOAD = "[OVERLOAD]system busy, start flow control for a while"


class Dispatcher:
    """Threads that answer the requests in a mailbox until it is closed. The arguments are those of `RemotingServer`."""

    def __init__(
        self,
        mailbox: Mailbox,
        processors: Mapping[int, Processor],
        *,
        check: Callable[[Request], None] | None = None,
        closed: Callable[[Channel], None] | None = None,
        again: Callable[[Call, tuple[str, int] | None], None] | None = None,
        max_ages: Mapping[int, float] | None = None,
        workers: int = 4,
    ) -> None:
        self._mailbox = mailbox
        self._processors = processors
        self._check = check
        self._closed = closed
        self._again = again
        self._max_ages = max_ages or {}
        self._later = new_semaphore(LATER)
        # Only the first worker takes requests with large bodies, so that the others keep answering small ones.
        self._workers = [new_thread(self._work, n == 0, name=f"rmqfast-{n}") for n in range(workers)]
        for worker in self._workers:
            worker.start()

    def join(self, patience: float) -> None:
        """Waits for processors that are running. Called after the mailbox is closed."""
        deadline = monotonic() + patience
        for worker in self._workers:
            if not is_current(worker):
                worker.join(max(0.0, deadline - monotonic()))

    def _work(self, takes_large: bool) -> None:  # noqa: FBT001 - an argument of a thread
        while True:
            event = self._mailbox.take(_WAIT, takes_large=takes_large)
            if isinstance(event, Call):
                self._answer(event)
            elif isinstance(event, str):
                _log.warning("%s", event)
            elif event is not None:
                self._end(*event)
            elif self._mailbox.is_closed:
                return

    def _answer(self, call: Call) -> None:
        request = _request(call)
        # The client has given up; an answer would only delay requests whose clients still wait.
        if call.age > self._max_ages.get(request.code, call.age):
            self._refuse(call, request, self._too_old(call))
            return
        try:
            self._send(call, request, self._process(request))
        except Exception as error:  # noqa: BLE001 - as in `process`
            _reply(call, error_response(request, error))

    def _send(self, call: Call, request: Request, answer: Response | Later | Again | None) -> None:
        match answer:
            case Response():
                _reply(call, answer)
            case Later() if not self._later.acquire(blocking=False):
                self._refuse(call, request, Response(ResponseCode.SYSTEM_BUSY, _OVERLOAD))
            case Later():
                self._start(call, request, answer)
            case Again() if self._again is not None:
                self._again(call, answer.target)
            case _:
                pass

    def _refuse(self, call: Call, request: Request, answer: Response) -> None:
        """Answers "system busy". Refused oneway requests are counted in a warning, since nobody gets their answer."""
        if request.is_oneway:
            self._mailbox.dropped()
        else:
            _reply(call, answer)

    def _start(self, call: Call, request: Request, later: Later) -> None:
        # One thread each, since a client that does not answer must not block a worker until the timeout.
        thread = new_thread(self._reply_later, call, request, later)
        try:
            thread.start()
        except BaseException:
            self._later.release()
            raise

    def _reply_later(self, call: Call, request: Request, later: Later) -> None:
        try:
            try:
                answer = later.work()
            finally:
                # Release before answering, since the client may send its next request at once.
                self._later.release()
            _reply(call, answer)
        except ResponseError as error:
            _reply(call, Response(error.code, error.remark))
        except Exception as error:  # noqa: BLE001 - as in `process`
            _reply(call, error_response(request, error))

    def _too_old(self, call: Call) -> Response:
        # The text of BrokerFastFailure.cleanExpiredRequestInQueue.
        remark = (
            "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, "
            f"period in queue: {call.age * 1000:.0f}ms, size of queue: {len(self._mailbox)}"
        )
        return Response(ResponseCode.SYSTEM_BUSY, remark)

    def _process(self, request: Request) -> Response | Later | Again | None:
        if self._check is not None:
            try:
                self._check(request)
            except ResponseError as error:
                return Response(error.code, error.remark)
        return process(self._processors, request)

    def _end(self, channel: NativeChannel, reason: str | None) -> None:
        peer = Channel(channel)
        if reason is not None:
            _log.warning("the connection of %s ended: %s", peer.remote_address, reason)
        if self._closed is not None:
            try:
                self._closed(peer)
            except Exception:  # noqa: BLE001 - as in `process`
                _log.exception("the end of the connection of %s could not be handled", peer.remote_address)


def _request(call: Call) -> Request:
    code, ext_fields, body, channel, remark, version, language, is_oneway = call.fields()
    return Request(code, ext_fields, body, Channel(channel), remark, version, language, is_oneway)


def _reply(call: Call, answer: Response) -> None:
    try:
        call.reply(answer.code, answer.remark, dict(answer.ext_fields or {}), answer.body, answer.version)
    except UnicodeEncodeError:
        # The answer quotes half of a UTF-16 surrogate pair from a request's body.
        call.reply(ResponseCode.SYSTEM_ERROR, "the answer is no text", {}, b"")
