"""Somebody follows the tutorial `lost-on-pages.md` in a real Chromium, from the overview to the lost message.

`RMQFAST_SCREENSHOTS=docs/images/dashboard` also writes its pictures.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, ViewportSize

from rmqfast import Admin, ClientConfig, EmbeddedCluster
from rmqfast.dashboard import Dashboard
from tests.examples.documents import blocks_of
from tests.waiting import until

from .browsing import watched
from .conftest import PASSWORD

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

DOCUMENT = "tutorials/lost-on-pages.md"
PICTURES = re.compile(r"images/dashboard/(lost-\w+)\.png")


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[tuple[EmbeddedCluster, Dashboard]]:
    """The shop of the tutorial, open, and the pages beside it."""
    (block,) = (block for block in blocks_of(DOCUMENT) if block.file == "shop.py")
    file = tmp_path / "shop.py"
    file.write_text(block.code)
    with ExitStack() as stack:
        cluster = stack.enter_context(EmbeddedCluster())
        environment = os.environ | {"NAMESRV_ADDR": cluster.name_server}
        process = stack.enter_context(
            subprocess.Popen([sys.executable, file], env=environment, stdout=subprocess.PIPE, text=True)
        )
        stack.callback(process.kill)
        assert process.stdout is not None
        assert process.stdout.readline() == "the shop is open\n"
        config = ClientConfig(name_server=cluster.name_server)
        dashboard = stack.enter_context(Dashboard(config, port=0, password=PASSWORD, interval=0.5))
        yield cluster, dashboard


def shoot(page: Page, name: str) -> str:
    if folder := os.environ.get("RMQFAST_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png")
    return name


def test_a_lost_message_is_found_and_comes_again(browser: Browser, shop: tuple[EmbeddedCluster, Dashboard]) -> None:
    cluster, dashboard = shop
    visit = watched(browser, dashboard, viewport=ViewportSize(width=1100, height=760))
    page, shown = visit.page, []
    page.reload()
    page.locator("figure.chart canvas").first.wait_for()
    shown.append(shoot(page, "lost-overview"))
    page.get_by_role("link", name="subscription-conflict: group billing").click()
    page.wait_for_url("**/groups/billing")
    assert "10.0.0.1@C1: TagA, 10.0.0.1@C2: TagB" in page.locator(".notice.problem").inner_text()
    losing = page.get_by_role("row").filter(has_text="loses messages")
    assert losing.count() == 1
    assert "10.0.0.1@C1" in losing.inner_text()
    page.locator("figure.chart canvas").first.wait_for()
    shown.append(shoot(page, "lost-group"))

    losing.get_by_role("link", name="0", exact=True).first.click()
    page.wait_for_url("**/messages?topic=orders")
    assert page.get_by_role("row").count() == 9
    shown.append(shoot(page, "lost-messages"))
    page.get_by_role("row").filter(has_text="order-4").get_by_role("link").first.click()
    verdict = page.locator(".notice.problem").inner_text()
    assert "billing: LOST" in verdict
    assert "nobody got it: handed to 10.0.0.1@C1 by TagB" in verdict
    assert "its tag TagB is not in its own subscription TagA" in verdict
    assert page.get_by_role("row").filter(has_text="DROPPED").count() == 1
    shown.append(shoot(page, "lost-message"))

    page.goto(f"http://{dashboard.address}/groups/billing")
    page.get_by_role("link", name="Reset offsets").click()
    page.get_by_label("To (UTC)").fill("begin")
    page.get_by_role("button", name="Show what it would do").click()
    assert page.locator(".facts").inner_text().split() == ["Come", "again", "8", "Are", "left", "out", "0"]
    shown.append(shoot(page, "lost-reset"))
    page.get_by_role("button", name="Do it").click()
    assert "billing is set to begin in orders" in page.locator(".notice.good").inner_text()
    with Admin(name_server=cluster.name_server) as admin:
        (lost, *_) = admin.messages.by_key("orders", "order-4")
        # Members pull it again. Nobody mended the subscription, so it may be lost once more.
        until(lambda: len(admin.explain(lost).events) > 1)
    assert (visit.foreign, visit.complaints) == ([], [])
    text = (Path(__file__).parents[2] / "docs" / DOCUMENT).read_text(encoding="utf-8")
    assert PICTURES.findall(text) == shown
