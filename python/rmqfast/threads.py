"""Threads and locks of the operating system, even if gevent or eventlet has patched the standard library.

rmqfast's threads wait in native code, where a greenlet would block the whole process. If `_thread` is patched, a
second, unpatched copy of the module is used; otherwise these are the classes of `threading`.
"""

from __future__ import annotations

import _thread
import importlib.util
import threading
import time
from _queue import Empty, SimpleQueue
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import cache
from types import BuiltinFunctionType
from typing import Any, TypeAlias, TypeVar, cast

from rmqfast.system import monotonic

__all__ = [
    "Condition",
    "Empty",
    "Event",
    "Lock",
    "Semaphore",
    "SimpleQueue",
    "Thread",
    "are_green",
    "is_current",
    "new_condition",
    "new_event",
    "new_future",
    "new_lock",
    "new_rlock",
    "new_semaphore",
    "new_thread",
    "run_later",
    "sleep",
    "thread_ident",
]

Condition: TypeAlias = threading.Condition
Event: TypeAlias = threading.Event
Lock: TypeAlias = threading.Lock
Semaphore: TypeAlias = threading.Semaphore
Thread: TypeAlias = threading.Thread

T = TypeVar("T")


def are_green() -> bool:
    """Whether gevent, eventlet or a similar library has replaced threads by greenlets."""
    # patching replaces the built-in function by one of Python
    return not isinstance(_thread.start_new_thread, BuiltinFunctionType)


def new_lock() -> Lock:
    return cast("Lock", _native().allocate_lock()) if are_green() else threading.Lock()


def new_rlock() -> Lock:
    return cast("Lock", _native().RLock() if are_green() else threading.RLock())


def new_condition() -> Condition:
    return cast("Condition", _Condition()) if are_green() else threading.Condition()


def new_event() -> Event:
    return cast("Event", _Event()) if are_green() else threading.Event()


def new_semaphore(value: int) -> Semaphore:
    return cast("Semaphore", _Semaphore(value)) if are_green() else threading.Semaphore(value)


def new_thread(work: Callable[..., object], *args: Any, name: str | None = None) -> Thread:
    """Returns a daemon thread that has not been started yet."""
    if are_green():
        return cast("Thread", _Thread(work, args, name or "rmqfast"))
    return threading.Thread(target=work, args=args, name=name, daemon=True)


def new_future() -> Future[T]:
    future: Future[T] = Future()
    if are_green():
        future._condition = new_condition()  # noqa: SLF001 - other threads cannot wake a greenlet's condition
    return future


def run_later(seconds: float, work: Callable[[], object]) -> None:
    over = new_event()

    def run() -> None:
        over.wait(seconds)
        work()

    new_thread(run, name="rmqfast-later").start()


def sleep(seconds: float) -> None:
    if are_green():
        new_event().wait(seconds)
    else:
        time.sleep(seconds)


def is_current(thread: Thread) -> bool:
    return thread.ident == thread_ident()


def thread_ident() -> int:
    return int(_native().get_ident()) if are_green() else threading.get_ident()


@cache
def _native() -> Any:
    # a second copy of the module, which was not patched
    spec = importlib.util.find_spec("_thread")
    if spec is None or spec.loader is None:
        raise ImportError("expected the built-in module _thread, got none")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class _Condition:
    """A `threading.Condition` with native locks. The standard class would create patched locks."""

    def __init__(self) -> None:
        # each waiter blocks on a lock of its own, which `notify` releases
        self._lock, self._waiters = _native().RLock(), deque[Any]()
        self.acquire, self.release = self._lock.acquire, self._lock.release

    def __enter__(self) -> bool:
        return bool(self._lock.__enter__())

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        waiter = _native().allocate_lock()
        waiter.acquire()
        self._waiters.append(waiter)
        # releases the lock even if this thread has acquired it several times
        state = self._lock._release_save()  # noqa: SLF001 - as `threading.Condition`
        is_notified = False
        try:
            is_notified = bool(waiter.acquire(timeout=-1 if timeout is None else max(0.0, timeout)))
            return is_notified
        finally:
            self._lock._acquire_restore(state)  # noqa: SLF001 - as above
            if not is_notified and waiter in self._waiters:
                self._waiters.remove(waiter)

    def wait_for(self, predicate: Callable[[], T], timeout: float | None = None) -> T:
        until = None if timeout is None else monotonic() + timeout
        while not (result := predicate()):
            left = None if until is None else until - monotonic()
            if left is not None and left <= 0:
                break
            self.wait(left)
        return result

    def notify(self, n: int = 1) -> None:
        for _ in range(min(n, len(self._waiters))):
            self._waiters.popleft().release()

    def notify_all(self) -> None:
        self.notify(len(self._waiters))


class _Event:
    def __init__(self) -> None:
        self._changed, self._is_set = _Condition(), False

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        with self._changed:
            self._is_set = True
            self._changed.notify_all()

    def clear(self) -> None:
        with self._changed:
            self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        with self._changed:
            return self._changed.wait_for(self.is_set, timeout)


class _Semaphore:
    def __init__(self, value: int) -> None:
        self._changed, self._value = _Condition(), value

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:  # noqa: FBT001, FBT002 - as threading's
        with self._changed:
            if not self._changed.wait_for(lambda: self._value > 0, timeout if blocking else 0.0):
                return False
            self._value -= 1
            return True

    def release(self) -> None:
        with self._changed:
            self._value += 1
            self._changed.notify()


class _Thread:
    def __init__(self, work: Callable[..., object], args: tuple[Any, ...], name: str) -> None:
        self._work, self._args, self.name = work, args, name
        self.ident: int | None = None
        self._started, self._ended = _Event(), _Event()

    def start(self) -> None:
        _native().start_new_thread(self._run, ())
        # `ident` is set when this returns
        self._started.wait()

    def is_alive(self) -> bool:
        return self._started.is_set() and not self._ended.is_set()

    def join(self, timeout: float | None = None) -> None:
        self._ended.wait(timeout)

    def _run(self) -> None:
        self.ident = thread_ident()
        self._started.set()
        try:
            self._work(*self._args)
        finally:
            # frees what they refer to, as `threading.Thread` does
            del self._work, self._args
            self._ended.set()
