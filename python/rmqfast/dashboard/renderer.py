"""Makes HTML, JSON and CSV of pages."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response

from rmqfast.dashboard.change_pages import TOKEN, TYPED, ReadOnlyError
from rmqfast.dashboard.guard import token_of
from rmqfast.dashboard.page import Page, Query
from rmqfast.dashboard.words import LANGUAGES, cell_text, is_number, is_time, language_of, word
from rmqfast.errors import ArgumentError, ExpressionError, ResponseError, RmqError, UnknownMessageError
from rmqfast.remoting import ResponseCode

#: Pages of the menu by their path, and the letter that follows `g` on the keyboard.
MENU = {
    "/": ("overview", "o"),
    "/groups": ("groups", "g"),
    "/topics": ("topics", "t"),
    "/messages": ("messages", "m"),
    "/dead-letters": ("dead_letters", "d"),
    "/producers": ("producers", "p"),
    "/brokers": ("brokers", "b"),
    "/alarms": ("alarms", "a"),
    "/doctor": ("doctor", "r"),
    "/access": ("access", "x"),
    "/changes": ("changes", "c"),
}
#: A cell of CSV with such a beginning would be a formula in a spreadsheet.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class Renderer:
    """Makes answers of pages, in the visitor's language."""

    def __init__(self, cluster: str, *, is_read_only: bool) -> None:
        self._cluster, self._is_read_only = cluster, is_read_only
        self._templates = Environment(
            loader=PackageLoader("rmqfast.dashboard"), autoescape=True, trim_blocks=True, lstrip_blocks=True
        )

    def page(self, request: Request, page: Page) -> Response:
        """Returns a page as HTML."""
        return self.html(request, "page.html", page=page, query=query_of(request))

    def error(self, request: Request, error: RmqError) -> Response:
        """Returns the page of an error, with its next steps."""
        steps = getattr(error, "__notes__", [])
        return self.html(request, "error.html", status=status_of(error), text=str(error), steps=steps)

    def html(self, request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
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
            cluster=self._cluster,
            is_read_only=self._is_read_only,
            has_data=request.method == "GET",
            token=token_of(request),
            names={"typed": TYPED, "token": TOKEN},
            word=lambda key: word(key, language),
            cell=lambda column, value: cell_text(column, value, language),
            is_number=is_number,
            is_time=is_time,
            url=lambda **changes: _url(request, changes),
            data=lambda ending: _data_url(request, ending),
            **values,
        )
        return HTMLResponse(html, status)


def json_of(request: Request, page: Page) -> Response:
    """Returns a page as JSON."""
    return JSONResponse(page.to_json(query_of(request)))


def csv_of(request: Request, page: Page) -> Response:
    """Returns the first table of a page as CSV."""
    text, query = io.StringIO(), query_of(request)
    writer = csv.writer(text, lineterminator="\n")
    for table in page.tables[:1]:
        writer.writerow(table.columns)
        writer.writerows(
            [_csv_cell(row.get(column)) for column in table.columns] for row in table.select(query).all_rows
        )
    return PlainTextResponse(text.getvalue(), media_type="text/csv")


def json_error(_request: Request, error: RmqError) -> Response:
    return JSONResponse({"error": str(error)}, status_of(error))


def csv_error(_request: Request, error: RmqError) -> Response:
    return PlainTextResponse(f"{error}\n", status_of(error))


def status_of(error: RmqError) -> int:
    """Returns the HTTP status of an error."""
    if isinstance(error, ReadOnlyError):
        return 403
    is_missing = isinstance(error, ResponseError) and error.code == ResponseCode.TOPIC_NOT_EXIST
    if is_missing or isinstance(error, UnknownMessageError):
        return 404
    return 400 if isinstance(error, ArgumentError | ExpressionError) else 502


def query_of(request: Request) -> Query:
    values = request.query_params
    page = values.get("page", "1")[:9]
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


def _csv_cell(value: object) -> object:
    text = "; ".join(map(str, value)) if isinstance(value, list) else value
    return f"'{text}" if isinstance(text, str) and text.startswith(_FORMULA) else text
