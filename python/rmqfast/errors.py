"""Errors and warnings of rmqfast.

```text
RmqError
├── StoreError                  a store directory, its files, its bytes
│   ├── StoreIOError            the operating system refused (also an OSError)
│   │   ├── StoreNotFoundError  a path that is not there (also a FileNotFoundError)
│   │   ├── StoreNotWritableError  closed, the disk too full for retention, or a write or a flush has failed
│   │   └── FlushTimeoutError   stored, but not on the disk in time
│   ├── CorruptError            bytes that contradict the format
│   ├── UnsupportedStoreError   a store of a kind that is not read: DLedger, or no store at all
│   └── StoreBusyError          somebody else owns the store, or holds its log for too long
├── RemotingError               a connection, or what came over it
│   ├── RemotingConnectError    nobody answers at the address (also a ConnectionError)
│   ├── ChannelClosedError      the connection ended while it was needed (also a ConnectionError)
│   ├── RemotingTimeoutError    no answer in time (also a TimeoutError)
│   │   └── TooManyRequestsError  no room for one more request in time; it was not sent
│   ├── TlsError                the two sides do not agree on TLS (also a ConnectionError)
│   ├── TlsFileError            a certificate or a key is of no use
│   ├── RemotingProtocolError   bytes that are no frame, or a frame above a limit
│   └── ResponseError           the answer is an error: carries its code and remark
├── ClientError                 a client cannot do what it was asked for: carries a code (Java's MQClientException)
│   ├── RequestTimeoutError     a request was sent, and nobody replied in time (also a TimeoutError)
│   └── DataLossError           messages of a range that was asked for are not there (any more)
├── MirrorError                 a copy of a broker's log cannot go on, or must not begin: says why, and what to do
├── UnknownTopicError           no such topic; the message lists names like it (also a LookupError)
├── UnknownMessageError         no message with that id (also a LookupError)
├── UnknownColumnError          no such column; the message lists names like it (also a LookupError)
├── ExpressionError             a tag or SQL92 expression that does not parse (also a ValueError)
├── ArgumentError               an argument out of range (also a ValueError)
│   └── ArgumentTypeError       an argument of a type that is not taken, or one that there is not (also a TypeError)
├── ForkError                   an object used in a fork of the process that made it (also a RuntimeError)
└── MissingExtraError           a library that an optional feature needs (also an ImportError)

DamageWarning                   a scan or look-up passed over bytes that it could not use
ExpressionWarning               a SQL92 expression names a column of the row, which it does not see
```

Source: RocketMQ's `MQClientException`, `RequestTimeoutException`.
"""

from __future__ import annotations

from typing import Final

#: `ClientErrorCode.REQUEST_TIMEOUT_EXCEPTION`.
_REQUEST_TIMEOUT = 10006


def plain_remark(remark: str) -> str:
    r"""Returns a peer's remark without Java's classes and lines, and without dead links."""
    from rmqfast import _native  # the extension imports this module

    return _native.plain_remark(remark)


def step_after(remark: str) -> str | None:
    """Returns the next step after a peer's remark; `None` if none is known."""
    from rmqfast import _native

    return _native.step_after(remark)


class RmqError(Exception):
    """The root of all errors of this package.

    Attributes:
        put_status: Of an append that failed, what a broker calls that: the name of a `PutMessageStatus`.

    Example:
        >>> import rmqfast
        >>> try:
        ...     rmqfast.open_store("/nowhere")
        ... except RmqError as error:
        ...     type(error).__name__
        'StoreNotFoundError'
    """

    put_status: str | None = None


class StoreError(RmqError):
    """A store directory cannot be used as asked.

    Example:
        >>> import rmqfast
        >>> try:
        ...     rmqfast.open_store("/nowhere")
        ... except StoreError as error:
        ...     isinstance(error, FileNotFoundError)
        True
    """


class StoreIOError(StoreError, OSError):
    """The operating system refused to read or write a file of a store."""


class StoreNotFoundError(StoreIOError, FileNotFoundError):
    """A store, or a file that it must have, does not exist."""


class StoreNotWritableError(StoreIOError):
    """The store takes no messages: it is closed, the disk is too full, or a write or a flush failed."""


class FlushTimeoutError(StoreIOError):
    """Messages are stored, but were not flushed in time: to append them again would store them twice."""


class CorruptError(StoreError):
    """Bytes of a store contradict the format: says file, offset, expected and got."""


class UnsupportedStoreError(StoreError):
    """The directory is not a RocketMQ store, or one that cannot be opened this way."""


class StoreBusyError(StoreError):
    """Another process owns the store, or another append holds its log for too long."""


class RemotingError(RmqError):
    """A connection cannot be made, or failed."""


class RemotingConnectError(RemotingError, ConnectionError):
    """No peer answers at the address in time."""


class ChannelClosedError(RemotingError, ConnectionError):
    """The connection closed while it was in use."""


class RemotingTimeoutError(RemotingError, TimeoutError):
    """The peer did not answer in time; the request may have been carried out."""


class TooManyRequestsError(RemotingTimeoutError):
    """Too many requests are in flight or wait to be sent, and none ended in time: this one was not sent."""


class RemotingProtocolError(RemotingError):
    """Bytes that are no frame of the remoting protocol, or exceed a limit."""


class TlsError(RemotingError, ConnectionError):
    """The TLS handshake failed: names the side that refused, and why."""


class TlsFileError(RemotingError):
    """A certificate, a key or a file of authorities cannot be used: names file, purpose, expected and got."""


class ResponseError(RemotingError):
    """A peer answered a request with an error: has its remark, and the next step if one is known.

    Attributes:
        code: The code of the response.
        remark: What the peer says of it, as it came.
        address: Who answered, where that is known.

    Example:
        >>> print(ResponseError(17, "topic[t] not exist, apply first please!", "10.0.0.1:10911"))
        CODE: 17  DESC: topic[t] not exist, apply first please! BROKER: 10.0.0.1:10911
        create the topic, or set autoCreateTopicEnable=true in broker.conf
    """

    def __init__(self, code: int, remark: str = "", address: str | None = None) -> None:
        super().__init__(int(code), remark, address)
        self.code: Final = int(code)
        self.remark = remark
        self.address = address

    def __str__(self) -> str:
        broker, step = "" if self.address is None else f" BROKER: {self.address}", step_after(self.remark)
        text = f"CODE: {self.code}  DESC: {plain_remark(self.remark)}{broker}"
        return text if step is None else f"{text}\n{step}"


class ClientError(RmqError):
    """A client cannot do as asked: has the reason, and the next step.

    Attributes:
        response_code: The code of the response that it comes from, one of `ClientErrorCode`, or -1.
    """

    def __init__(self, message: str, *, response_code: int = -1, next_step: str | None = None) -> None:
        super().__init__(message if next_step is None else f"{message}\n{next_step}")
        self.response_code: Final = int(response_code)


class RequestTimeoutError(ClientError, TimeoutError):
    """A request was sent, and no reply came in time: it may have been carried out."""

    def __init__(self, message: str, *, next_step: str | None = None) -> None:
        super().__init__(message, response_code=_REQUEST_TIMEOUT, next_step=next_step)


class DataLossError(ClientError):
    """Messages of a range of a queue do not exist any more: says which, and how to read the rest."""


class MirrorError(RmqError):
    """A copy of a broker's log cannot go on, or must not begin: has the reason, and the next step."""

    def __init__(self, message: str, *, next_step: str | None = None) -> None:
        # without a next step where it comes out of a pickle: then the text has it
        super().__init__(message if next_step is None else f"{message}\n{next_step}")


class UnknownTopicError(RmqError, LookupError):
    """The store has no such topic."""


class UnknownMessageError(RmqError, LookupError):
    """The store has no message with that id."""


class UnknownColumnError(RmqError, LookupError):
    """The row has no such column."""


class ExpressionError(RmqError, ValueError):
    """A tag or SQL92 expression does not parse: says where."""


class ArgumentError(RmqError, ValueError):
    """An argument is out of range: says what it may be."""


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument has a wrong type or an unknown name: says what to write.

    Example:
        >>> import rmqfast
        >>> rmqfast.Message("orders", {"id": 42})
        Traceback (most recent call last):
        rmqfast.errors.ArgumentTypeError: body: expected bytes or a text, got a dict: write json.dumps(body)
    """


class ForkError(RmqError, RuntimeError):
    """An object is used in a fork of the process that made it."""


class MissingExtraError(RmqError, ImportError):
    """A feature needs a library that is not installed: says which command installs it."""


class DamageWarning(UserWarning):
    """A scan or a look-up skipped bytes that it could not use; `Scan.damage` lists those of a scan.

    Example:
        >>> import rmqfast, warnings
        >>> path = getfixture("golden_store_copy")("basic-4.9.4")
        >>> log = next((path / "commitlog").iterdir())
        >>> with log.open("r+b") as file:
        ...     position, written = file.seek(4096), file.write(bytes(64))
        >>> with rmqfast.open_store(path) as store, warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always", rmqfast.DamageWarning)
        ...     rows = store.scan(columns=["body"], verify_crc=True).to_arrow().num_rows
        >>> caught[0].category.__name__
        'DamageWarning'
    """


class ExpressionWarning(UserWarning):
    """A SQL92 expression names a column of the row, but sees only the properties of messages."""
