"""Errors and warnings of rmqfast.

```text
RmqError
├── StoreError                  a store directory, its files, its bytes
│   ├── StoreIOError            the operating system refused (also an OSError)
│   │   ├── StoreNotFoundError  a missing path (also a FileNotFoundError)
│   │   ├── StoreNotWritableError  closed, the disk too full for retention, or a write or a flush has failed
│   │   └── FlushTimeoutError   stored, but not flushed in time
│   ├── CorruptError            bytes that contradict the format
│   ├── UnsupportedStoreError   not a RocketMQ store, or an unsupported kind such as DLedger
│   └── StoreBusyError          another process owns the store, or another append holds its log too long
├── RemotingError               a connection or its data
│   ├── RemotingConnectError    no peer answers at the address (also a ConnectionError)
│   ├── ChannelClosedError      the connection closed while in use (also a ConnectionError)
│   ├── RemotingTimeoutError    no answer in time (also a TimeoutError)
│   │   └── TooManyRequestsError  too many requests for the whole timeout; not sent
│   ├── TlsError                the TLS handshake failed (also a ConnectionError)
│   ├── TlsFileError            an unusable certificate or key
│   ├── RemotingProtocolError   an invalid frame, or a frame above a limit
│   └── ResponseError           an error answer, with its code and remark
├── ClientError                 a client cannot do what was requested; with a code (Java's MQClientException)
│   ├── RequestTimeoutError     a request was sent, but there was no reply in time (also a TimeoutError)
│   └── DataLossError           messages of a requested range no longer exist
├── MirrorError                 a copy of a broker's log cannot start or continue
├── TableConflictError          another ingest has written to the table meanwhile
├── UnknownTopicError           an unknown topic; the message lists similar names (also a LookupError)
├── UnknownMessageError         an unknown message id (also a LookupError)
├── UnknownColumnError          an unknown column; the message lists similar names (also a LookupError)
├── DecodeError                 a body that does not fit its schema, in a scan with on_error="fail" (also a ValueError)
├── ExpressionError             an invalid tag or SQL92 expression (also a ValueError)
├── ArgumentError               an argument out of range (also a ValueError)
│   └── ArgumentTypeError       an argument of a wrong type or an unknown name (also a TypeError)
├── ForkError                   an object used in a fork of the process that made it (also a RuntimeError)
└── MissingExtraError           a missing library of an optional feature (also an ImportError)

DamageWarning                   a read skipped damaged bytes
DecodeWarning                   a scan could not decode some bodies
ExpressionWarning               an SQL92 expression names a column, but only sees properties
```

Source: RocketMQ's `MQClientException`, `RequestTimeoutException`.
"""

from __future__ import annotations

from typing import Final

#: `ClientErrorCode.REQUEST_TIMEOUT_EXCEPTION`.
_REQUEST_TIMEOUT = 10006


def plain_remark(remark: str) -> str:
    r"""Returns a broker's or name server's remark without Java class names, line numbers and outdated links."""
    # the extension imports this module
    from rmqfast import _native

    return _native.plain_remark(remark)


def step_after(remark: str) -> str | None:
    """Returns advice for the remark of a broker or a name server. None if there is none."""
    from rmqfast import _native

    return _native.step_after(remark)


class RmqError(Exception):
    """The root of all errors of this package.

    Attributes:
        put_status: For a failed append: name of the `PutMessageStatus` that a broker answers.

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
    """A store directory cannot be used as requested.

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
    """The store does not accept messages: it is closed, the disk is too full, or a write or flush failed."""


class FlushTimeoutError(StoreIOError):
    """Messages are stored but were not flushed in time. Appending them again would store them twice."""


class CorruptError(StoreError):
    """Bytes of a store violate the format. The message names file, offset, expected value and actual value."""


class UnsupportedStoreError(StoreError):
    """The directory is not a RocketMQ store, or cannot be opened this way."""


class StoreBusyError(StoreError):
    """Another process owns the store, or another append holds the log for too long."""


class RemotingError(RmqError):
    """A connection failed, or could not be made."""


class RemotingConnectError(RemotingError, ConnectionError):
    """No peer answers at the address in time."""


class ChannelClosedError(RemotingError, ConnectionError):
    """The connection closed while it was in use."""


class RemotingTimeoutError(RemotingError, TimeoutError):
    """The peer did not answer in time. It may have processed the request."""


class TooManyRequestsError(RemotingTimeoutError):
    """Too many requests were in flight or queued until the timeout. This request was not sent."""


class RemotingProtocolError(RemotingError):
    """The peer sent an invalid frame, or a frame that exceeds a limit."""


class TlsError(RemotingError, ConnectionError):
    """The TLS handshake failed. The message names the side that refused, and the reason."""


class TlsFileError(RemotingError):
    """A certificate, key or CA file cannot be used. The message names the file and its purpose."""


class ResponseError(RemotingError):
    """A peer answered a request with an error. The message has its remark and, if known, the next step.

    Attributes:
        code: The response code.
        remark: The peer's original remark.
        address: Address of the peer, if known.

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
    """A client cannot do what was requested. The message has the reason and the next step.

    Attributes:
        response_code: The response code, one of `ClientErrorCode`, or -1.
    """

    def __init__(self, message: str, *, response_code: int = -1, next_step: str | None = None) -> None:
        super().__init__(message if next_step is None else f"{message}\n{next_step}")
        self.response_code: Final = int(response_code)


class RequestTimeoutError(ClientError, TimeoutError):
    """A request was sent, but no reply came in time. The request may have been processed."""

    def __init__(self, message: str, *, next_step: str | None = None) -> None:
        super().__init__(message, response_code=_REQUEST_TIMEOUT, next_step=next_step)


class DataLossError(ClientError):
    """Messages of a requested range of a queue no longer exist. The error's text shows how to read the rest."""


class MirrorError(RmqError):
    """A copy of a broker's log cannot start or continue. The error's text has the reason and the next step."""

    def __init__(self, message: str, *, next_step: str | None = None) -> None:
        # an unpickled error has no next step: its message already includes it
        super().__init__(message if next_step is None else f"{message}\n{next_step}")


class TableConflictError(RmqError):
    """Another ingest has written to the table meanwhile. Nothing was added; the next run continues behind it."""


class UnknownTopicError(RmqError, LookupError):
    """The store does not have the topic."""


class UnknownMessageError(RmqError, LookupError):
    """The store does not have a message with that id."""


class UnknownColumnError(RmqError, LookupError):
    """The column does not exist."""


class DecodeError(RmqError, ValueError):
    """A body does not fit its schema. The message names the topic, the queue, the offset and the reason."""


class ExpressionError(RmqError, ValueError):
    """A tag or SQL92 expression is invalid. The message shows the position."""


class ArgumentError(RmqError, ValueError):
    """An argument is out of range. The message shows the allowed values."""


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument has a wrong type or an unknown name. The message shows what to write.

    Example:
        >>> import rmqfast
        >>> rmqfast.Message("orders", {"id": 42})
        Traceback (most recent call last):
        rmqfast.errors.ArgumentTypeError: body: expected bytes or a text, got a dict: write json.dumps(body)
    """


class ForkError(RmqError, RuntimeError):
    """An object is used in a forked process that did not create it."""


class MissingExtraError(RmqError, ImportError):
    """A feature needs a library that is not installed. The message shows the command that installs it."""


class DamageWarning(UserWarning):
    """A read has skipped damaged bytes. For a scan, `Scan.damage` lists them.

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


class DecodeWarning(UserWarning):
    """A scan could not decode some bodies. `Scan.decode_errors` lists the first of them.

    Example:
        >>> import rmqfast, warnings
        >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
        >>> with store, warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always", rmqfast.DecodeWarning)
        ...     values = store.scan("fx_q1", columns=["value"], decode="json", schema="id bigint").to_arrow()
        >>> caught[0].category.__name__, values["value"].null_count
        ('DecodeWarning', 1259)
    """


class ExpressionWarning(UserWarning):
    """An SQL92 expression names a column, but expressions only see the properties of messages."""
