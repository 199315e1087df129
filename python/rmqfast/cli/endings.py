"""Ends commands: one line on standard error and an exit code, never a traceback; also on signals."""

from __future__ import annotations

import queue
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Self

from rmqfast.cli.output import say
from rmqfast.cli.streams import standard_streams
from rmqfast.client.instance import ClientErrorCode
from rmqfast.errors import (
    ArgumentError,
    ClientError,
    CorruptError,
    ExpressionError,
    MirrorError,
    MissingExtraError,
    RemotingError,
    ResponseError,
    RmqError,
    StoreBusyError,
    StoreError,
    UnknownColumnError,
    UnknownTopicError,
)
from rmqfast.extras import is_missing

PROBLEM, USAGE, UNREACHABLE, INTERRUPTED = 1, 2, 3, 130
#: The first match counts, so subclasses precede their bases.
CODES: tuple[tuple[type[RmqError], int], ...] = (
    (CorruptError, PROBLEM),
    (StoreError, UNREACHABLE),
    (ResponseError, PROBLEM),
    (RemotingError, UNREACHABLE),
    (MirrorError, PROBLEM),
    (MissingExtraError, UNREACHABLE),
    (ArgumentError, USAGE),
    (ExpressionError, USAGE),
    (UnknownColumnError, USAGE),
    (UnknownTopicError, USAGE),
)
#: Codes of a `ClientError` that mean the same as a `RemotingError`.
NOBODY_ANSWERS = frozenset({ClientErrorCode.CONNECT_BROKER_EXCEPTION, ClientErrorCode.ACCESS_BROKER_TIMEOUT})
#: Libraries that single commands need, with the extra that installs them.
EXTRAS = {
    "starlette": "dashboard",
    "uvicorn": "dashboard",
    "jinja2": "dashboard",
    "rich": "cli",
    "pyarrow": "cli",
    "pyspark": "spark",
    "py4j": "spark",
    "pandas": "spark",
    "numpy": "spark",
}
EXTRAS |= dict.fromkeys(("itsdangerous", "jinja2", "starlette", "uvicorn"), "dashboard")
NEXT_STEP: dict[type[RmqError], str] = {
    RemotingError: "another port: --broker-port, --namesrv-port or --port, or listenPort in the file; 0 is any",
    StoreBusyError: "end the process that has it, or take another store: --store, or storePathRootDir in the file",
    UnknownTopicError: "`rmqfast store info DIR` lists the topics",
    ExpressionError: "as in --tags 'paid || shipped', --sql \"amount > 3 AND region IN ('eu')\"",
}


@contextmanager
def end_on_errors() -> Iterator[None]:
    """Ends the command with an exit code after an error, a closed pipe or Ctrl-C. Only an error prints a line."""
    try:
        with standard_streams():
            yield
    except RmqError as error:
        say(f"error: {describe(error)}")
        raise SystemExit(exit_code(error)) from None
    except ImportError as error:
        if not is_missing(error, *EXTRAS):
            raise
        extra = EXTRAS[str(error.name)]
        say(f"error: {error.name} is needed for this: pip install 'rmqfast[{extra}]'")
        raise SystemExit(UNREACHABLE) from None
    except OSError as error:
        say(f"error: {': '.join(filter(None, (error.filename and str(error.filename), error.strerror or str(error))))}")
        raise SystemExit(UNREACHABLE) from None
    except KeyboardInterrupt:
        # The exit code that shells give a program that Ctrl-C has ended.
        raise SystemExit(INTERRUPTED) from None


def exit_code(error: RmqError) -> int:
    if isinstance(error, ClientError) and error.response_code in NOBODY_ANSWERS:
        return UNREACHABLE
    return next((code for kind, code in CODES if isinstance(error, kind)), PROBLEM)


def describe(error: RmqError) -> str:
    """Formats an error as one line, with the next step."""
    text = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error)
    text = "; ".join(text.splitlines())
    step = "; ".join(getattr(error, "__notes__", [])) or NEXT_STEP.get(type(error))
    return f"{text} ({step})" if step else text


#: Seconds between checks; Python handles a signal that another thread received only between two waits.
_INTERVAL = 1.0


class StopSignals:
    """Receives SIGTERM and Ctrl-C for a command that serves. In the block, a signal only ends `wait`.

    `is_noted` says whether a signal has arrived.
    """

    def __init__(self) -> None:
        self.is_noted: bool = False
        # Not a `threading.Event`: the handler interrupts the waiting thread at any line. If that thread holds the
        # event's lock, `set` would wait for the lock forever. `SimpleQueue.put` is reentrant.
        self._wakes: queue.SimpleQueue[None] = queue.SimpleQueue()

    def wait(self) -> bool:
        """Waits up to one second for a signal. Returns whether one has arrived."""
        if not self.is_noted:
            with suppress(queue.Empty):
                self._wakes.get(timeout=_INTERVAL)
        return self.is_noted

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._note) for number in (signal.SIGTERM, signal.SIGINT)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, *_: Any) -> None:
        self.is_noted = True
        # Ends the wait at once, not only after `_INTERVAL`.
        self._wakes.put(None)


@contextmanager
def end_on_signals() -> Iterator[None]:
    """Ends the command with exit code 0 after Ctrl-C or SIGTERM. The block shuts down first."""
    # SIGTERM raises KeyboardInterrupt, too, so that one handler suffices.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        raise SystemExit(0) from None
    finally:
        signal.signal(signal.SIGTERM, before)
