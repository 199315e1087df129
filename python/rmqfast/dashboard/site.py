"""The dashboard's paths, and what answers at each: HTML, JSON or CSV of a page."""

from __future__ import annotations

import csv
import io
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from rmqfast.dashboard import cluster_pages, detail_pages
from rmqfast.dashboard.guard import Guard, Password, form_of, has_token, next_path, token_of
from rmqfast.dashboard.page import Page, Query
from rmqfast.dashboard.state import ClusterState
from rmqfast.dashboard.words import LANGUAGES, cell_text, language_of, word
from rmqfast.errors import ResponseError, RmqError

Make = Callable[[Request], Page]
#: Pages of the menu, by their path.
MENU = {
    "/": "overview",
    "/groups": "groups",
    "/topics": "topics",
    "/brokers": "brokers",
    "/alarms": "alarms",
    "/doctor": "doctor",
}
_SESSION_HOURS = 12
#: A cell of CSV with such a beginning would be a formula in a spreadsheet.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class Site:
    """Makes pages of a cluster's state."""

    def __init__(self, state: ClusterState, password: str) -> None:
        self._state = state
        self._password = Password(password)
        self._templates = Environment(
            loader=PackageLoader("rmqfast.dashboard"), autoescape=True, trim_blocks=True, lstrip_blocks=True
        )

    def app(self, hosts: Sequence[str]) -> Starlette:
        """Returns the application; `hosts` are the names by which browsers may ask."""
        state = self._state
        makers: dict[str, Make] = {
            "/": lambda _: cluster_pages.overview(state.look),
            "/groups": lambda _: cluster_pages.groups(state.look),
            "/groups/{name:path}": lambda request: detail_pages.group(state.admin, state.look, _name(request)),
            "/topics": lambda request: cluster_pages.topics(state.look, every="all" in request.query_params),
            "/topics/{name:path}": lambda request: detail_pages.topic(state.admin, state.look, _name(request)),
            "/brokers": lambda _: cluster_pages.brokers(state.look),
            "/alarms": lambda _: cluster_pages.alarms(state.look),
            "/doctor": lambda _: detail_pages.diagnosis_page(state.diagnosis()),
        }
        routes: list[BaseRoute] = [
            Mount("/static", StaticFiles(packages=[("rmqfast.dashboard", "static")])),
            Route("/login", self._login_page, methods=["GET"]),
            Route("/login", self._log_in, methods=["POST"]),
            Route("/logout", self._log_out, methods=["POST"]),
        ]
        for path, make in makers.items():
            # "/" has no name of its own that an ending could follow.
            data = "/overview" if path == "/" else path
            routes += [
                Route(data + ".json", self._json(make)),
                Route(data + ".csv", self._csv(make)),
                Route(path, self._html(make)),
            ]
        key, age = secrets.token_urlsafe(32), _SESSION_HOURS * 3600
        middleware = [
            Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts)),
            Middleware(SessionMiddleware, secret_key=key, max_age=age, same_site="strict"),
            Middleware(Guard),
        ]
        return Starlette(routes=routes, middleware=middleware)

    def _html(self, make: Make) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            try:
                page = make(request)
            except RmqError as error:
                return self._error(request, error)
            return self._render(request, "page.html", page=page, query=_query(request))

        return answer

    def _json(self, make: Make) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            try:
                return JSONResponse(make(request).to_json(_query(request)))
            except RmqError as error:
                return JSONResponse({"error": str(error)}, _status(error))

        return answer

    def _csv(self, make: Make) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            try:
                page = make(request)
            except RmqError as error:
                return PlainTextResponse(f"{error}\n", _status(error))
            return PlainTextResponse(_csv_text(page, _query(request)), media_type="text/csv")

        return answer

    def _error(self, request: Request, error: RmqError) -> Response:
        steps = getattr(error, "__notes__", [])
        return self._render(request, "error.html", status=_status(error), text=str(error), steps=steps)

    def _render(self, request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
        wanted = request.query_params.get("lang")
        if wanted in LANGUAGES:
            request.session["language"] = wanted
        language = language_of(request.session.get("language"), request.headers.get("accept-language", ""))
        html = self._templates.get_template(template).render(
            menu=MENU,
            path=request.url.path,
            parameters=dict(request.query_params),
            language=language,
            languages=LANGUAGES,
            age=self._state.age,
            cluster=self._state.config.name_server,
            token=token_of(request),
            word=lambda key: word(key, language),
            cell=lambda column, value: cell_text(column, value, language),
            url=lambda **changes: _url(request, changes),
            data=lambda ending: _data_url(request, ending),
            **values,
        )
        return HTMLResponse(html, status)

    def _login_page(self, request: Request) -> Response:
        return self._render(request, "login.html", problem=None)

    async def _log_in(self, request: Request) -> Response:
        form = await form_of(request)
        if not has_token(request, form):
            return self._render(request, "login.html", problem="form_expired", status=403)
        if not self._password.may_try():
            return self._render(request, "login.html", problem="too_many_attempts", status=429)
        if not self._password.is_right(form.get("password", "")):
            return self._render(request, "login.html", problem="wrong_password", status=403)
        request.session.clear()  # a new session: nobody may have known the old one
        request.session["is_known"] = True
        return RedirectResponse(next_path(request), 303)

    async def _log_out(self, request: Request) -> Response:
        if has_token(request, await form_of(request)):
            request.session.clear()
        return RedirectResponse("/login", 303)


def _name(request: Request) -> str:
    name: str = request.path_params["name"]
    return name


def _query(request: Request) -> Query:
    values = request.query_params
    page = values.get("page", "1")
    return Query(
        text=values.get("q", "").strip(), sort=values.get("sort", ""), page=int(page) if page.isdecimal() else 1
    )


def _url(request: Request, changes: Mapping[str, object]) -> str:
    return str(request.url.include_query_params(**changes).replace(scheme="", netloc=""))


def _data_url(request: Request, ending: str) -> str:
    """Returns the address of the same page as JSON or CSV, with the same parameters."""
    path = "/overview" if request.url.path == "/" else request.scope["path"]
    query = f"?{request.url.query}" if request.url.query else ""
    return quote(path) + ending + query


def _status(error: RmqError) -> int:
    return 404 if isinstance(error, ResponseError) and error.code == 17 else 502


def _csv_text(page: Page, query: Query) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for table in page.tables[:1]:
        writer.writerow(table.columns)
        writer.writerows(
            [_csv_cell(row.get(column)) for column in table.columns] for row in table.select(query).all_rows
        )
    return text.getvalue()


def _csv_cell(value: object) -> object:
    text = "; ".join(map(str, value)) if isinstance(value, list) else value
    return f"'{text}" if isinstance(text, str) and text.startswith(_FORMULA) else text
