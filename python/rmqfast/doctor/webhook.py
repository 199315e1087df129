"""Posts changes of alarms to a URL, as JSON, each until it is taken."""

from __future__ import annotations

import json
from collections import deque
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from rmqfast.doctor.alarm import AlarmChange
from rmqfast.errors import ArgumentError
from rmqfast.logs import logger_of
from rmqfast.threads import Thread, new_condition, new_thread

_log = logger_of(__name__)
#: Seconds that the receiver may take.
_PATIENCE = 10.0
#: Seconds until a change is posted again, at first and at most.
_FIRST_RETRY, _LAST_RETRY = 1.0, 60.0
#: Changes that wait for the receiver; the oldest are dropped.
_MOST = 1_000


class Webhook:
    """Posts changes in their order, on a thread of its own.

    Args:
        url: URL of the receiver, `http` or `https`.
        cluster: Name of the cluster in what is posted.

    Raises:
        ArgumentError: The URL has another form.
    """

    def __init__(self, url: str, *, cluster: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ArgumentError(f"webhook: expected http://host/path or https://host/path, got {url!r}")
        # The path may hold a secret.
        self._url, self._name, self._cluster = url, f"{parts.scheme}://{parts.hostname}", cluster
        self._opener = build_opener(_NoRedirect)
        self._wakes = new_condition()
        self._waiting: deque[AlarmChange] = deque()
        self._is_closed = False
        self._thread: Thread | None = None

    def start(self) -> None:
        """Begins to post."""
        self._thread = new_thread(self._run, name="rmqfast-webhook")
        self._thread.start()

    def post(self, changes: list[AlarmChange]) -> None:
        """Takes changes, to post them after those before."""
        dropped = 0
        with self._wakes:
            self._waiting.extend(changes)
            while len(self._waiting) > _MOST:
                self._waiting.popleft()
                dropped += 1
            self._wakes.notify_all()
        if dropped:
            _log.error("%d alarms were not posted to %s: it takes none", dropped, self._name)

    def close(self) -> None:
        """Posts what waits once more, and ends. What the receiver does not take is logged."""
        with self._wakes:
            self._is_closed = True
            self._wakes.notify_all()
        if self._thread is not None:
            self._thread.join()
        for change in self._waiting:
            _log.error("not posted to %s: %s", self._name, change)

    def _run(self) -> None:
        retry = _FIRST_RETRY
        while (change := self._next()) is not None:
            problem = self._send(change)
            if problem is None:
                retry = _FIRST_RETRY
                with self._wakes:
                    # It may have been dropped meanwhile.
                    if self._waiting and self._waiting[0] is change:
                        self._waiting.popleft()
                continue
            _log.warning("%s does not take an alarm, it is posted again in %g s: %s", self._name, retry, problem)
            with self._wakes:
                if not self._is_closed:
                    self._wakes.wait(retry)
                if self._is_closed:
                    return
            retry = min(2 * retry, _LAST_RETRY)

    def _next(self) -> AlarmChange | None:
        """Waits for the next change. `None` if posting ends and nothing waits."""
        with self._wakes:
            while not self._waiting and not self._is_closed:
                self._wakes.wait()
            return self._waiting[0] if self._waiting else None

    def _send(self, change: AlarmChange) -> str | None:
        """Posts a change. Returns why it was not taken, or `None`."""
        body = json.dumps(json_of(change) | {"cluster": self._cluster}).encode()
        request = Request(self._url, body, {"Content-Type": "application/json"})  # noqa: S310  # checked above
        try:
            with self._opener.open(request, timeout=_PATIENCE):
                return None
        except (HTTPException, OSError, ValueError) as error:
            return str(error) or repr(error)


class _NoRedirect(HTTPRedirectHandler):
    """Follows no redirect: it would ask the other place without the change, which nobody had taken then."""

    def redirect_request(self, *_: Any) -> None:
        return None


def json_of(change: AlarmChange) -> dict[str, Any]:
    """Returns a change as JSON's values; `text` is all of it in one line."""
    finding = change.alarm.finding
    return {
        "event": "raised" if change.is_raised else "cleared",
        "name": finding.name,
        "subject": finding.subject,
        "evidence": finding.evidence,
        "next_step": finding.next_step,
        "since": change.alarm.since,
        "at": change.at,
        "text": str(change),
    }
