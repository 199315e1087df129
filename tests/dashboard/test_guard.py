"""Strangers see nothing but the login, and nobody else's page can act for a visitor."""

from __future__ import annotations

import base64
import socket
from collections.abc import Iterator

import pytest

from rmqfast import ClientConfig, EmbeddedCluster
from rmqfast.dashboard import Dashboard
from rmqfast.errors import ArgumentError

from .conftest import PASSWORD
from .visitor import Visitor

PAGES = ("/", "/groups", "/groups/billing", "/topics", "/topics/orders", "/brokers", "/alarms", "/doctor")


@pytest.fixture
def stranger(dashboard: Dashboard) -> Iterator[Visitor]:
    with Visitor(dashboard.address) as made:
        yield made


@pytest.fixture
def fresh(cluster: EmbeddedCluster) -> Iterator[Visitor]:
    """A stranger at a dashboard where nobody has tried a password."""
    config = ClientConfig(name_server=cluster.name_server)
    with Dashboard(config, port=0, password=PASSWORD) as running, Visitor(running.address) as made:
        yield made


@pytest.mark.parametrize("path", PAGES)
def test_a_stranger_is_sent_to_the_login(stranger: Visitor, path: str) -> None:
    answer = stranger.get(path)
    assert (answer.status, answer.headers["location"]) == (303, f"/login?next={path}")
    for ending in (".json", ".csv"):
        answer = stranger.get(("/overview" if path == "/" else path) + ending)
        assert (answer.status, answer.text) == (401, "a session is needed: log in at /login\n")


@pytest.mark.parametrize("path", [*PAGES, "/login", "/static/style.css", "/nowhere"])
def test_no_page_may_load_anything_from_elsewhere(visitor: Visitor, path: str) -> None:
    headers = visitor.get(path).headers
    assert headers["content-security-policy"] == (
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )
    assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "same-origin")
    assert headers["server"] is None


def test_a_password_opens_a_session_until_the_visitor_leaves(fresh: Visitor) -> None:
    assert fresh.log_in("wrong").status == 403
    assert fresh.get("/").status == 303
    answer = fresh.log_in(PASSWORD, "/login?next=/groups")
    assert (answer.status, answer.headers["location"]) == (303, "/groups")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert fresh.get("/groups").status == 200
    token = fresh.token("/groups")
    assert fresh.post("/logout", {"token": "another"}).status == 303
    assert fresh.get("/groups").status == 200
    assert fresh.post("/logout", {"token": token}).headers["location"] == "/login"
    assert fresh.get("/groups").status == 303


@pytest.mark.parametrize("path", ["//evil.example", "/\\evil.example", "https://evil.example", "evil"])
def test_the_login_leads_to_no_other_site(dashboard: Dashboard, path: str) -> None:
    with Visitor(dashboard.address) as visitor:
        answer = visitor.log_in(PASSWORD, f"/login?next={path}")
    assert (answer.status, answer.headers["location"]) == (303, "/")


@pytest.mark.parametrize(
    ("form", "headers"),
    [
        ({"password": PASSWORD}, {}),
        ({"password": PASSWORD, "token": "guessed"}, {}),
        ({"password": PASSWORD, "token": None}, {"Origin": "http://evil.example"}),
        ({"password": PASSWORD, "token": None, "more": "x" * 5000}, {}),
    ],
    ids=["no token", "another token", "another site", "too large"],
)
def test_a_form_of_somebody_else_opens_no_session(
    fresh: Visitor, form: dict[str, str | None], headers: dict[str, str]
) -> None:
    token = fresh.token()
    filled = {name: token if value is None else value for name, value in form.items()}
    assert fresh.post("/login", filled, **headers).status == 403
    assert fresh.get("/").status == 303


def test_few_passwords_may_be_tried_at_once(fresh: Visitor) -> None:
    answers = [fresh.log_in("wrong").status for _ in range(8)]
    assert answers[:5] == [403] * 5
    assert 429 in answers[5:]


@pytest.mark.parametrize("forged", ["", "e30=.x.y", base64.b64encode(b'{"is_known": true}').decode(), "\x01"])
def test_a_forged_session_is_none(stranger: Visitor, forged: str) -> None:
    stranger.cookie = f"session={forged}"
    assert stranger.get("/").status == 303


def test_a_session_of_another_dashboard_is_none(visitor: Visitor, fresh: Visitor) -> None:
    fresh.cookie = visitor.cookie
    assert fresh.get("/").status == 303


def test_another_name_of_this_machine_is_refused(visitor: Visitor) -> None:
    """A page of another site whose name leads here must not read anything."""
    assert visitor.get("/", Host="evil.example").status == 400


@pytest.mark.skipif(not socket.has_ipv6, reason="there is no IPv6")
def test_the_pages_may_be_at_an_address_of_ipv6(cluster: EmbeddedCluster) -> None:
    config = ClientConfig(name_server=cluster.name_server)
    with Dashboard(config, port=0, host="::1", password=PASSWORD) as running, Visitor(running.address) as visitor:
        assert running.address.startswith("[::1]:")
        assert visitor.log_in(PASSWORD).status == 303


def test_a_name_has_a_form() -> None:
    with pytest.raises(ArgumentError, match=r"allowed_hosts: expected names, as mq\.example"):
        Dashboard(ClientConfig(name_server="127.0.0.1:9876"), allowed_hosts=["m*q"])


def test_a_name_may_be_allowed(cluster: EmbeddedCluster) -> None:
    config = ClientConfig(name_server=cluster.name_server)
    with Dashboard(config, port=0, allowed_hosts=["mq.example"]) as running, Visitor(running.address) as visitor:
        assert len(running.password) >= 16
        assert visitor.get("/", Host="mq.example").status == 303
        assert visitor.get("/", Host="127.0.0.1").status == 400


@pytest.mark.parametrize("host", ["localhost:/static/", "localhost/static/?", "localhost:80/login"])
def test_no_host_opens_a_page(stranger: Visitor, host: str) -> None:
    answer = stranger.get("/groups", Host=host)
    assert answer.status in {303, 400}
    assert "billing" not in answer.text


def test_a_page_that_refreshes_itself_is_sent_to_the_login(stranger: Visitor) -> None:
    answer = stranger.get("/groups", HX_Request="true")
    assert (answer.status, answer.headers["hx-redirect"]) == (401, "/login?next=/groups")


def test_an_address_may_be_long_and_a_page_may_be_none(visitor: Visitor) -> None:
    assert visitor.get(f"/groups?page={'9' * 5000}").status == 200
    assert visitor.get(f"/groups?q={'x' * 60_000}").status == 200
