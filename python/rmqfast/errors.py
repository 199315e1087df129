"""What rmqfast raises and warns of.

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
├── UnknownTopicError           no such topic; the message lists names like it (also a LookupError)
├── UnknownMessageError         no message with that id (also a LookupError)
├── UnknownColumnError          no such column; the message lists names like it (also a LookupError)
├── ExpressionError             a tag or SQL92 expression that does not parse (also a ValueError)
├── ArgumentError               an argument out of range (also a ValueError)
├── ForkError                   an object used in a fork of the process that made it (also a RuntimeError)
└── MissingExtraError           a library that an optional feature needs (also an ImportError)

DamageWarning                   a scan or look-up passed over bytes that it could not use
```
"""


class RmqError(Exception):
    """The root of all errors of this package.

    Attributes:
        put_status: Of an append that failed, what a broker calls that: the name of a `PutMessageStatus`.
    """

    put_status: str | None = None


class StoreError(RmqError):
    """Something about a store directory is not as it should be."""


class StoreIOError(StoreError, OSError):
    """The operating system refused to read or write a file of a store."""


class StoreNotFoundError(StoreIOError, FileNotFoundError):
    """A store, or a file that it must have, is not there."""


class StoreNotWritableError(StoreIOError):
    """The store takes no messages: it is closed, the disk is too full, or a write or a flush has failed."""


class FlushTimeoutError(StoreIOError):
    """Messages are stored, but the disk did not take them in time: to append them again would store them twice."""


class CorruptError(StoreError):
    """Bytes of a store contradict the format: says file, offset, expected and got."""


class UnsupportedStoreError(StoreError):
    """The directory is no RocketMQ store, or one of a kind that cannot be opened this way."""


class StoreBusyError(StoreError):
    """Another process owns the store, or another append holds its log for too long."""


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


class ForkError(RmqError, RuntimeError):
    """An object is used in a fork of the process that made it."""


class MissingExtraError(RmqError, ImportError):
    """A feature needs a library that is not installed: says which command installs it."""


class DamageWarning(UserWarning):
    """A scan or a look-up passed over bytes that it could not use; `Scan.damage` lists those of a scan."""
