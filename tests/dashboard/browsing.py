"""Pages in a real Chromium, watched."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Browser, Page, Request

from rmqfast.dashboard import Dashboard

from .conftest import PASSWORD


class Watched:
    """A browser's page that notes foreign requests, and what the browser complains about."""

    def __init__(self, page: Page, origin: str) -> None:
        self.page, self._origin = page, origin
        self.foreign: list[str] = []
        self.complaints: list[str] = []
        page.on("request", self._note)
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _note(self, request: Request) -> None:
        if not request.url.startswith(self._origin):
            self.foreign.append(request.url)


def watched(browser: Browser, dashboard: Dashboard, **options: Any) -> Watched:
    """A page of a visitor who has logged in by the keyboard."""
    origin = f"http://{dashboard.address}/"
    page = browser.new_context(**options).new_page()
    made = Watched(page, origin)
    page.goto(f"{origin}login")
    page.wait_for_function("document.activeElement.name == 'password'")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url(origin)
    return made
