"""Visits pages as a browser does, with its cookies, and without JavaScript."""

from __future__ import annotations

import http.client
import json
import re
from dataclasses import dataclass
from email.message import Message
from typing import Any, Self
from urllib.parse import urlencode

_TOKEN = re.compile(r'name="token" value="([^"]*)"')


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Message
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


class Visitor:
    """A browser's session with the dashboard at an address."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=60)
        self.cookie = ""

    def get(self, path: str, **headers: str) -> Answer:
        return self._ask("GET", path, None, headers)

    def post(self, path: str, form: dict[str, str], **headers: str) -> Answer:
        return self._ask("POST", path, urlencode(form), headers)

    def token(self, path: str = "/login") -> str:
        found = _TOKEN.search(self.get(path).text)
        assert found is not None
        return found[1]

    def log_in(self, password: str, path: str = "/login") -> Answer:
        return self.post(path, {"token": self.token(path), "password": password})

    def _ask(self, method: str, path: str, body: str | None, headers: dict[str, str]) -> Answer:
        sent = {"Cookie": self.cookie, "Content-Type": "application/x-www-form-urlencoded"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request(method, path, body, sent)
        response = self._connection.getresponse()
        text = response.read().decode()
        # The server ends idle connections, and a test may take its time until the next request.
        self._connection.close()
        if cookie := response.headers["set-cookie"]:
            self.cookie = cookie.split(";")[0]
        return Answer(response.status, response.headers, text)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
