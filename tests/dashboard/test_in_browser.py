"""Each page in a real Chromium: for everybody, light and dark, narrow and wide, from this host alone.

`RMQFAST_SCREENSHOTS=docs/images/dashboard` also writes the pictures of the documents.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Request, ViewportSize, sync_playwright

from rmqfast.dashboard import Dashboard

from .conftest import MIXED, PASSWORD, TOPIC

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

PAGES = {
    "overview": "/",
    "groups": "/groups",
    "group": f"/groups/{MIXED}",
    "topics": "/topics",
    "topic": f"/topics/{TOPIC}",
    "brokers": "/brokers",
    "alarms": "/alarms",
    "doctor": "/doctor",
    "missing": "/groups/nobody",
}
WIDE, NARROW = ViewportSize(width=1280, height=800), ViewportSize(width=360, height=740)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path)
        yield started
        started.close()


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


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_everybody_can_use_each_page(browser: Browser, dashboard: Dashboard, size: Any, scheme: Any) -> None:
    visit = watched(browser, dashboard, viewport=size, color_scheme=scheme)
    for name, path in PAGES.items():
        visit.page.goto(f"http://{dashboard.address}{path}")
        found = Axe().run(visit.page).response["violations"]
        assert found == [], (name, [(each["id"], [node["html"] for node in each["nodes"]]) for each in found])
        # Wide tables scroll in their frame.
        assert visit.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        _shoot(visit.page, name, size, scheme)
    assert visit.foreign == []
    # A browser tells the status of a page that is not there.
    assert [each for each in visit.complaints if "404" not in each] == []


def _shoot(page: Page, name: str, size: Any, scheme: str) -> None:
    folder = os.environ.get("RMQFAST_SCREENSHOTS")
    if folder and name in {"overview", "group"} and size is WIDE:
        page.screenshot(path=Path(folder) / f"{name}-{scheme}.png")


def test_the_login_is_for_everybody_too(browser: Browser, dashboard: Dashboard) -> None:
    page = browser.new_context(viewport=NARROW).new_page()
    page.goto(f"http://{dashboard.address}/login?lang=zh")
    assert Axe().run(page).response["violations"] == []
    page.get_by_label("密码").fill("wrong")
    page.get_by_role("button", name="登录").click()
    assert page.get_by_role("alert").inner_text() == "密码错误。"


def test_the_keyboard_reaches_what_the_pointer_does(browser: Browser, dashboard: Dashboard) -> None:
    page = watched(browser, dashboard).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.get_by_role("link", name="Groups").press("Enter")
    page.get_by_label("Search").fill("bill")
    page.keyboard.press("Enter")
    page.wait_for_url("**/groups?q=bill")
    page.get_by_role("link", name=MIXED).press("Enter")
    page.wait_for_url(f"**/groups/{MIXED}")
    assert "2 queues lose messages" in page.locator("main").inner_text()
    page.get_by_role("button", name="Log out").press("Enter")
    page.wait_for_url("**/login")


def test_pages_can_be_read_without_javascript(browser: Browser, dashboard: Dashboard) -> None:
    page = watched(browser, dashboard, java_script_enabled=False).page
    page.get_by_role("link", name="Groups").click()
    page.get_by_role("link", name="Behind").click()
    assert page.get_by_role("row").count() == 3
