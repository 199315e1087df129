"""Questions to brokers, asked at the same time and under one deadline."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from rmqfast.client.instance import ClientApi
from rmqfast.client.instance.api import as_fields, checked
from rmqfast.errors import RemotingError, RemotingTimeoutError, ResponseError
from rmqfast.remoting import Response, ResponseCode
from rmqfast.system import monotonic
from rmqfast.threads import new_event, new_lock, new_thread

#: Questions that one broker gets at a time. RocketMQ has 16 threads for all requests of administrators
#: (`adminBrokerThreadPoolNums`), and each waits ten seconds for a member that does not answer.
AT_ONCE = 12

#: Answer of a broker, or the error that came instead.
Answer: TypeAlias = Response | RemotingError


class Question(NamedTuple):
    """A request to a broker at an address, `host:port`."""

    address: str
    code: int
    ext_fields: Mapping[str, object] = MappingProxyType({})


def ask_all(
    api: ClientApi, questions: Sequence[Question], *, seconds: float, accepts_all: bool = False
) -> list[Answer]:
    """Returns the answer to each question, or the error that came instead, in the order of the questions.

    See `ask_in_turn`.
    """
    return list(ask_in_turn(api, questions, seconds=seconds, accepts_all=accepts_all))


def ask_in_turn(
    api: ClientApi, questions: Sequence[Question], *, seconds: float, accepts_all: bool = False
) -> Iterator[Answer]:
    """Asks all questions, and yields the answers in their order, each as soon as it and those before are there.

    All answers together get so many seconds. Each broker has at most `AT_ONCE` questions at a time. With `accepts_all`,
    an answer whose code is not SUCCESS is no error, as that of a pull that finds nothing.

    Raises:
        ForkError: The client is of the process before a fork.
    """
    round_ = _Round(api, questions, monotonic() + seconds, accepts_all=accepts_all)
    round_.start()
    return round_.answers()


def body_of(answer: Answer) -> bytes:
    """Returns the body of an answer. Raises the error that came instead."""
    if isinstance(answer, RemotingError):
        raise answer
    return answer.body


def is_refusal(error: ResponseError) -> bool:
    """Whether an answer says that the account has no right, and so tells nothing of what was asked."""
    return error.code == ResponseCode.NO_PERMISSION or "AclException" in error.remark


class _Round:
    def __init__(self, api: ClientApi, questions: Sequence[Question], deadline: float, *, accepts_all: bool) -> None:
        self._api, self._questions, self._deadline = api, questions, deadline
        self._accepts_all = accepts_all
        #: Set when an answer comes.
        self._lock, self._came = new_lock(), new_event()
        self._answers: dict[int, Response | Exception] = {}
        #: Questions not asked yet, by address.
        self._open: dict[str, deque[int]] = {}
        for index, question in enumerate(questions):
            self._open.setdefault(question.address, deque()).append(index)

    def start(self) -> None:
        # A thread for each broker, since opening a connection to one that is gone takes seconds.
        for address in self._open:
            new_thread(self._begin, address, name=f"rmqfast-ask-{address}").start()

    def answers(self) -> Iterator[Answer]:
        for index in range(len(self._questions)):
            while (answer := self._take_answer(index)) is None:
                self._came.wait()
            if not isinstance(answer, Response | RemotingError):
                raise answer
            yield answer

    def _take_answer(self, index: int) -> Response | Exception | None:
        with self._lock:
            self._came.clear()
            return self._answers.pop(index, None)

    def _begin(self, address: str) -> None:
        for _ in range(AT_ONCE):
            self._ask_next(address)

    def _ask_next(self, address: str) -> None:
        """Asks a broker its next question. A question that cannot be asked ends with its error."""
        while (index := self._take(address)) is not None:
            question, left = self._questions[index], self._deadline - monotonic()
            if left <= 0:
                self._end(index, RemotingTimeoutError(f"<{address}> was not asked: the time was over"))
                continue
            on_done = partial(self._finish, address, index)
            try:
                fields = as_fields(question.ext_fields)
                self._api.connections.submit(address, question.code, fields, b"", on_done, timeout=left)
            except Exception as error:  # noqa: BLE001  # `answers` raises it: without an end it would wait forever
                self._end(index, error)
            else:
                return

    def _take(self, address: str) -> int | None:
        with self._lock:
            indexes = self._open[address]
            return indexes.popleft() if indexes else None

    def _finish(self, address: str, index: int, outcome: Answer) -> None:
        try:
            if isinstance(outcome, Response) and not self._accepts_all:
                checked(outcome, address)
            self._end(index, outcome)
        except RemotingError as error:
            self._end(index, error)
        self._ask_next(address)

    def _end(self, index: int, answer: Response | Exception) -> None:
        with self._lock:
            self._answers[index] = answer
            self._came.set()
