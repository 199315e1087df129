"""Keeps strangers out: a password, signed sessions, and headers that let a page load nothing from elsewhere."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import parse_qs, quote, urlsplit

from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from rmqfast.remoting.rate_limit import TokenBucket
from rmqfast.system import monotonic
from rmqfast.threads import new_lock

#: Bytes of a form.
_MOST_BYTES = 4096
_MOST_FIELDS = 20
#: Wrong passwords: at once, and per second.
_BURST, _PER_SECOND = 5, 0.5
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    # Not "no-referrer": with it, browsers send no origin with a form, by which those of other sites are told apart.
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
#: Paths that need no password.
OPEN = ("/login", "/static/")


class Password:
    """Compares passwords in constant time. After some wrong ones, refuses all for a while."""

    def __init__(self, password: str) -> None:
        self._password: Final = password.encode()
        self._lock = new_lock()
        self._attempts = TokenBucket(_BURST, _PER_SECOND, now=monotonic())

    def may_try(self) -> bool:
        """Whether another attempt is allowed now."""
        with self._lock:
            return self._attempts.has(1, now=monotonic())

    def is_right(self, text: str) -> bool:
        if hmac.compare_digest(self._password, text.encode()):
            return True
        with self._lock:
            self._attempts.take(1, now=monotonic())
        return False


class Guard(BaseHTTPMiddleware):
    """Sends everybody without a session to the login, and sets the headers of each answer."""

    async def dispatch(self, request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        # Not `request.url`, which older releases of starlette make of the Host that a browser sends.
        path: str = request.scope["path"]
        login = f"/login?next={quote(path)}"
        if path.startswith(OPEN) or request.session.get("is_known"):
            answer = await call_next(request)
        elif request.headers.get("hx-request"):
            # A page that refreshes itself; without this it would show a part of the login, which has none.
            answer = Response(status_code=401, headers={"HX-Redirect": login})
        elif wants_data(path):
            answer = PlainTextResponse("a session is needed: log in at /login\n", 401)
        else:
            answer = RedirectResponse(login, 303)
        answer.headers.update(HEADERS)
        return answer


def wants_data(path: str) -> bool:
    """Whether a path is the JSON or CSV of a page."""
    return path.endswith((".json", ".csv"))


async def form_of(request: Request, *, most_bytes: int = _MOST_BYTES) -> dict[str, str]:
    """Returns the fields of a form. Empty if it is too large or comes from another site."""
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
        return {}
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > most_bytes:
            return {}
    try:
        fields = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        return {}
    return {name: values[-1] for name, values in fields.items()}


def token_of(request: Request) -> str:
    """Returns the session's token, which each form must send back."""
    token: str = request.session.setdefault("token", secrets.token_urlsafe(16))
    return token


def has_token(request: Request, form: dict[str, str]) -> bool:
    expected = request.session.get("token")
    return expected is not None and hmac.compare_digest(expected.encode(), form.get("token", "").encode())


def next_path(request: Request) -> str:
    """Returns the path to go to after the login: one of this site."""
    path = request.query_params.get("next", "/")
    return path if path.startswith("/") and not path.startswith(("//", "/\\")) else "/"
