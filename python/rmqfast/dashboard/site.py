"""The dashboard's paths, and what answers at each: HTML, JSON or CSV of a page."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from rmqfast.dashboard import client_pages, cluster_pages, detail_pages, message_page, message_pages
from rmqfast.dashboard.change import Values
from rmqfast.dashboard.change_pages import ChangePages
from rmqfast.dashboard.guard import Guard, Password, form_of, has_token, next_path
from rmqfast.dashboard.page import Chart, Page
from rmqfast.dashboard.renderer import Renderer, csv_error, csv_of, json_error, json_of
from rmqfast.dashboard.state import ClusterState
from rmqfast.errors import RmqError
from rmqfast.message import MessageQueue

Make = Callable[[Request], Page]
_SESSION_HOURS = 12
#: Bytes of the form of a change, which may name many dead letters.
_CHANGE_BYTES = 256 << 10


class Site:
    """Makes pages of a cluster's state."""

    def __init__(self, state: ClusterState, changes: ChangePages, password: str) -> None:
        self._state, self._changes = state, changes
        self._password = Password(password)
        self._renderer = Renderer(str(state.config.name_server), is_read_only=changes.is_read_only)

    def app(self, hosts: Sequence[str]) -> Starlette:
        """Returns the application; `hosts` are the names by which browsers may ask."""
        routes: list[BaseRoute] = [
            Mount("/static", StaticFiles(packages=[("rmqfast.dashboard", "static")])),
            Route("/login", self._login_page, methods=["GET"]),
            Route("/login", self._log_in, methods=["POST"]),
            Route("/logout", self._log_out, methods=["POST"]),
            Route("/changes/{name}", self._change, methods=["POST"]),
            Route("/messages/{topic}/{broker}/{queue:int}/{offset:int}/body", self._body),
            Route("/charts/rates.json", self._chart(lambda _: cluster_pages.rates(self._state.history))),
            Route("/charts/backlog.json", self._chart(self._backlog)),
        ]
        for path, make in self._makers().items():
            # "/" has no name of its own that an ending could follow.
            data = "/overview" if path == "/" else path
            routes += [
                Route(data + ".json", self._answer(make, json_of, json_error)),
                Route(data + ".csv", self._answer(make, csv_of, csv_error)),
                Route(path, self._answer(make, self._renderer.page, self._renderer.error)),
            ]
        key, age = secrets.token_urlsafe(32), _SESSION_HOURS * 3600
        middleware = [
            Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts)),
            Middleware(SessionMiddleware, secret_key=key, max_age=age, same_site="strict"),
            Middleware(Guard),
        ]
        return Starlette(routes=routes, middleware=middleware)

    def _makers(self) -> dict[str, Make]:
        state = self._state
        return {
            "/": lambda _: cluster_pages.overview(state.look, state.history),
            "/groups": lambda _: cluster_pages.groups(state.look),
            "/groups/{name:path}": lambda request: detail_pages.group(
                state.admin, state.look, state.history, _name(request)
            ),
            "/topics": lambda request: cluster_pages.topics(state.look, every="all" in request.query_params),
            "/topics/{name:path}": lambda request: detail_pages.topic(state.admin, state.look, _name(request)),
            "/messages": lambda request: message_pages.messages(state.admin, state.look, _values(request)),
            "/messages/{topic}/{broker}/{queue:int}/{offset:int}": lambda request: message_page.message(
                state.admin, state.config, *_place(request), _values(request)
            ),
            "/dead-letters": lambda _: cluster_pages.dead_letters(state.look),
            "/dead-letters/{name:path}": lambda request: message_pages.dead_letters(
                state.admin, _name(request), _values(request)
            ),
            "/producers": lambda _: client_pages.producers(state.admin),
            "/brokers": lambda _: cluster_pages.brokers(state.look),
            "/alarms": lambda _: cluster_pages.alarms(state.look),
            "/doctor": lambda _: detail_pages.diagnosis_page(state.diagnosis()),
            "/access": lambda _: client_pages.access(state.admin, state.look),
            "/changes": lambda _: self._changes.list_changes(),
            "/changes/{name}": lambda request: self._changes.show(_name(request), state.look, _values(request)),
        }

    def _backlog(self, request: Request) -> Chart:
        return detail_pages.backlog(self._state.history, request.query_params.get("group", ""))

    @staticmethod
    def _chart(make: Callable[[Request], Chart]) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            return JSONResponse(make(request).to_json())

        return answer

    def _answer(
        self,
        make: Make,
        render: Callable[[Request, Page], Response],
        fail: Callable[[Request, RmqError], Response],
    ) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            try:
                page = make(request)
            except RmqError as error:
                return fail(request, error)
            return render(request, replace(page, age=self._state.age) if page.is_of_look else page)

        return answer

    async def _change(self, request: Request) -> Response:
        form = await form_of(request, most_bytes=_CHANGE_BYTES)
        if not has_token(request, form):
            return self._renderer.html(request, "error.html", status=403, text=_EXPIRED, steps=[])
        visitor = "" if request.client is None else request.client.host
        try:
            page = await run_in_threadpool(self._changes.make, _name(request), self._state.look, form, visitor)
        except RmqError as error:
            return self._renderer.error(request, error)
        return self._renderer.page(request, page)

    def _body(self, request: Request) -> Response:
        try:
            body = message_page.body_at(self._state.admin, *_place(request))
        except RmqError as error:
            return self._renderer.error(request, error)
        # A file to be kept: a browser must not show what somebody sent as a page of this site.
        headers = {"Content-Disposition": 'attachment; filename="body.bin"'}
        return Response(body, media_type="application/octet-stream", headers=headers)

    def _login_page(self, request: Request) -> Response:
        return self._renderer.html(request, "login.html", problem=None)

    async def _log_in(self, request: Request) -> Response:
        form = await form_of(request)
        if not has_token(request, form):
            return self._renderer.html(request, "login.html", problem="form_expired", status=403)
        if not self._password.may_try():
            return self._renderer.html(request, "login.html", problem="too_many_attempts", status=429)
        if not self._password.is_right(form.get("password", "")):
            return self._renderer.html(request, "login.html", problem="wrong_password", status=403)
        request.session.clear()  # a new session: nobody may have known the old one
        request.session["is_known"] = True
        return RedirectResponse(next_path(request), 303)

    async def _log_out(self, request: Request) -> Response:
        if has_token(request, await form_of(request)):
            request.session.clear()
        return RedirectResponse("/login", 303)


_EXPIRED = "the form has expired, or comes from another site: nothing was changed; open the change again"


def _name(request: Request) -> str:
    name: str = request.path_params["name"]
    return name


def _place(request: Request) -> tuple[MessageQueue, int]:
    values = request.path_params
    queue = MessageQueue(values["topic"], values["broker"], values["queue"])
    return message_pages.check_place(queue, values["offset"])


def _values(request: Request) -> Values:
    """Returns the parameters of a page. One that comes several times has all its values, with blanks between."""
    values = request.query_params
    return {name: " ".join(values.getlist(name)) for name in values}
