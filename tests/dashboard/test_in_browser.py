"""Each page in a real Chromium: for everybody, light and dark, narrow and wide, from this host alone.

`RMQFAST_SCREENSHOTS=docs/images/dashboard` also writes the pictures of the documents.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, ViewportSize

from rmqfast import Admin, ConsumeConcurrentlyStatus, EmbeddedCluster, Message, MessageQueue, Producer
from rmqfast.dashboard import Dashboard
from tests.client.push.listening import Seen, consumer
from tests.waiting import until

from .browsing import watched
from .conftest import MIXED, TOPIC

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
    "messages": f"/messages?topic={TOPIC}",
    "message": f"/messages/{TOPIC}/broker-a/0/1",
    "dead letters": "/dead-letters",
    "producers": "/producers",
    "access": "/access",
    "changes": "/changes",
    "reset": f"/changes/reset?group={MIXED}&topic={TOPIC}&to=begin",
    "delete": f"/changes/delete-topic?topic={TOPIC}",
    "refused": "/changes/reset?group=a&topic=nowhere&to=end",
    "missing": "/groups/nobody",
}
WIDE, NARROW = ViewportSize(width=1280, height=800), ViewportSize(width=360, height=740)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_everybody_can_use_each_page(browser: Browser, dashboard: Dashboard, size: Any, scheme: Any) -> None:
    visit = watched(browser, dashboard, viewport=size, color_scheme=scheme)
    for name, path in PAGES.items():
        visit.page.goto(f"http://{dashboard.address}{path}")
        if visit.page.locator("figure.chart").count():
            visit.page.locator("figure.chart canvas").first.wait_for()
        found = Axe().run(visit.page).response["violations"]
        assert found == [], (name, [(each["id"], [node["html"] for node in each["nodes"]]) for each in found])
        # Wide tables scroll in their frame.
        assert visit.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        _shoot(visit.page, name, size, scheme)
    visit.page.keyboard.press("?")
    assert Axe().run(visit.page).response["violations"] == []
    assert visit.foreign == []
    # A browser tells the status of a page that is not there.
    assert [each for each in visit.complaints if "404" not in each] == []


def _shoot(page: Page, name: str, size: Any, scheme: str) -> None:
    folder = os.environ.get("RMQFAST_SCREENSHOTS")
    if folder and name in {"overview", "group", "message"} and size is WIDE:
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


def test_keys_lead_to_pages_rows_and_help(browser: Browser, dashboard: Dashboard) -> None:
    page = watched(browser, dashboard).page
    page.keyboard.press("?")
    assert page.get_by_role("dialog").is_visible()
    page.keyboard.press("Escape")
    assert not page.get_by_role("dialog").is_visible()
    page.keyboard.press("g")
    page.keyboard.press("g")
    page.wait_for_url("**/groups")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    assert page.evaluate("document.activeElement.textContent") == MIXED
    page.keyboard.press("/")
    page.keyboard.type("g?")  # letters, where somebody types
    assert page.get_by_label("Search").input_value() == "g?"
    assert not page.get_by_role("dialog").is_visible()


def test_a_page_refreshes_itself_and_leaves_what_somebody_types(
    browser: Browser, dashboard: Dashboard, cluster: EmbeddedCluster
) -> None:
    visit = watched(browser, dashboard)
    page = visit.page
    page.goto(f"http://{dashboard.address}/groups")
    page.get_by_label("Search").fill("late")
    with Admin(name_server=cluster.name_server) as admin:
        admin.create_group("latecomers")
        page.get_by_role("link", name="latecomers").wait_for()
        assert page.get_by_label("Search").input_value() == "late"
        assert page.evaluate("document.activeElement.name") == "q"
        admin.groups.delete("latecomers")
    assert (visit.foreign, visit.complaints) == ([], [])


def test_a_page_whose_session_has_ended_leads_to_the_login(browser: Browser, dashboard: Dashboard) -> None:
    page = watched(browser, dashboard).page
    page.goto(f"http://{dashboard.address}/groups")
    page.context.clear_cookies()
    page.wait_for_url("**/login?next=/groups")


EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>"


def test_nothing_that_a_message_holds_runs(browser: Browser, dashboard: Dashboard, cluster: EmbeddedCluster) -> None:
    with (
        Admin(name_server=cluster.name_server) as admin,
        Producer("evil", name_server=cluster.name_server) as producer,
    ):
        admin.create_topic("evil", queues=1)
        properties = {EVIL.replace(" ", "_"): EVIL, "plain": "x"}
        for body in (EVIL.encode(), f'{{"{EVIL.replace("=", "")}": 1}}'.encode(), EVIL.encode() * 60_000):
            producer.send(
                Message("evil", body, tags=EVIL, keys=EVIL, properties=properties), MessageQueue("evil", "broker-a", 0)
            )
        visit = watched(browser, dashboard)
        visit.page.on("dialog", lambda dialog: visit.complaints.append(dialog.message))
        paths = [
            "/messages?topic=evil",
            *(f"/messages/evil/broker-a/0/{offset}?body={form}" for offset in range(3) for form in ("", "hex")),
        ]
        paths += [f"/messages?topic=evil&text={quote(EVIL)}", f"/groups?q={quote(EVIL)}&lang={quote(EVIL)}"]
        for path in paths:
            visit.page.goto(f"http://{dashboard.address}{path}")
            assert visit.page.locator("main img, main script").count() == 0
        admin.topics.delete("evil")
    assert (visit.foreign, visit.complaints) == ([], [])


def test_each_change_is_asked_shown_and_done(browser: Browser, dashboard: Dashboard, cluster: EmbeddedCluster) -> None:
    visit = watched(browser, dashboard)
    page, origin = visit.page, f"http://{dashboard.address}"

    def change(title: str, done: str) -> None:
        """Shows what it would do, and does it."""
        page.get_by_role("button", name="Show what it would do").click()
        assert "Nothing was changed yet" in page.locator("main").inner_text()
        page.get_by_role("button", name="Do it").click()
        assert done in page.locator(".notice.good").inner_text(), title

    with Admin(name_server=cluster.name_server) as admin:
        page.goto(f"{origin}/topics")
        page.get_by_role("link", name="Create or change a topic").click()
        page.get_by_label("Topic").fill("by_hand")
        change("create-topic", "the topic by_hand is on all masters")
        page.goto(f"{origin}/groups")
        page.get_by_role("link", name="Create or change a group").click()
        page.get_by_label("Group", exact=True).fill("by_hand")
        change("create-group", "the group by_hand is on all masters")
        for queue in (
            MessageQueue("by_hand", name, number) for name in ("broker-a", "broker-b") for number in range(4)
        ):
            admin.offsets.reset("by_hand", queue, 0)
        for name, fields in {"reset": ("to",), "skip": (), "clone": ("target",)}.items():
            page.goto(f"{origin}/changes/{name}?group=by_hand&topic=by_hand")
            if fields:
                page.locator(f"input[name={fields[0]}]").fill("begin" if name == "reset" else "by_hand_too")
                change(name, "by_hand")
            else:
                page.get_by_role("button", name="Do it").click()
                assert "skipped" in page.locator(".notice.good").inner_text()
        page.goto(f"{origin}/groups/by_hand")
        page.get_by_role("link", name="Delete a group").click()
        page.get_by_label("To go on, type the name").fill("wrong")
        page.get_by_role("button", name="Do it").click()
        assert "type its name" in page.locator(".notice.problem").inner_text()
        page.go_back()
        page.get_by_label("To go on, type the name").fill("by_hand")
        page.get_by_role("button", name="Do it").click()
        assert "is deleted" in page.locator(".notice.good").inner_text()
        page.goto(f"{origin}/topics/by_hand")
        page.get_by_role("link", name="Delete a topic").click()
        page.get_by_label("To go on, type the name").fill("by_hand")
        page.get_by_role("button", name="Do it").click()
        assert "by_hand" not in admin.topics.all()
        page.reload()  # sends the form again
        assert "this form was sent before" in page.locator(".notice.problem").inner_text()
    page.goto(f"{origin}/changes")
    assert page.get_by_role("row").count() == 1 + 8  # a refused one is noted, too
    assert visit.foreign == []
    assert [each for each in visit.complaints if "400" not in each] == []


def test_selected_dead_letters_are_resent(browser: Browser, dashboard: Dashboard, cluster: EmbeddedCluster) -> None:
    page = watched(browser, dashboard).page
    with (
        Admin(name_server=cluster.name_server) as admin,
        Producer("senders", name_server=cluster.name_server) as producer,
    ):
        admin.create_topic("parcels", queues=1)
        for number in range(3):
            producer.send(Message("parcels", b"parcel %d" % number))
        listener = Seen(lambda _messages, _context: ConsumeConcurrentlyStatus.RECONSUME_LATER)
        options = {"max_reconsume_times": 0, "consume_from_where": "CONSUME_FROM_FIRST_OFFSET"}
        with consumer(cluster, "couriers", listener, "parcels", **options):
            until(lambda: "%DLQ%couriers" in admin.topics.all() and len(admin.dead_letters.of_group("couriers")) == 3)
        page.goto(f"http://{dashboard.address}/dead-letters/couriers")
        page.get_by_role("checkbox").nth(0).check()
        page.get_by_role("checkbox").nth(2).check()
        page.get_by_role("button", name="Resend the selected ones").click()
        assert "couriers would consume 2 dead letters once more" in page.locator("main").inner_text()
        page.get_by_role("button", name="Do it").click()
        assert "2 dead letters are resent to couriers" in page.locator(".notice.good").inner_text()
        assert len(admin.messages.page("%RETRY%couriers").messages) == 2
        admin.groups.delete("couriers", remove_offsets=True)
        admin.topics.delete("parcels")
