"""Pages show what administrators' requests tell, can be searched and sorted, and escape everything."""

from __future__ import annotations

import csv
import re
import socket

import pytest

from rmqfast import Admin, ClientConfig, EmbeddedCluster
from rmqfast.dashboard import Dashboard
from rmqfast.dashboard.renderer import MENU
from rmqfast.errors import RemotingError
from rmqfast.message import MessageQueue
from tests.admin.members import online, wants
from tests.doctor.examined import CAREFUL
from tests.proxy import Proxy
from tests.waiting import until

from .conftest import MIXED, OFFLINE, PASSWORD, TOPIC
from .visitor import Visitor


def test_the_overview_begins_with_what_is_wrong(visitor: Visitor) -> None:
    told = visitor.get("/overview.json").json
    assert [notice["title"] for notice in told["notices"]] == [
        f"group-offline: group {OFFLINE}",
        f"subscription-conflict: group {MIXED}",
    ]
    assert (told["facts"]["brokers"], told["facts"]["groups"], told["facts"]["online_members"]) == (2, 2, 2)
    assert [row["broker"] for row in told["brokers"]] == ["broker-a", "broker-b"]
    html = visitor.get("/").text
    assert html.index("subscription-conflict") < html.index("Longest backlogs")
    assert f'<a href="/groups/{MIXED}">' in html


def test_groups_are_those_of_a_snapshot_the_worst_first(visitor: Visitor, cluster: EmbeddedCluster) -> None:
    rows = visitor.get("/groups.json").json["groups"]
    assert [(row["group"], row["state"]) for row in rows] == [(MIXED, "conflict"), (OFFLINE, "offline")]
    with Admin(name_server=cluster.name_server) as admin:
        groups = {group.group: group for group in admin.snapshot(members=True).groups}
    progress = groups[OFFLINE].progress
    assert progress is not None
    assert (rows[1]["behind"], rows[1]["members"]) == (progress.diff_total, 0)
    assert rows[1]["lag_seconds"] > 0


def test_a_group_tells_the_losing_queues_and_their_owner(visitor: Visitor) -> None:
    told = visitor.get(f"/groups/{MIXED}.json").json
    assert told["notices"][0] == {
        "level": "problem",
        "title": "subscription-conflict",
        "text": f"{TOPIC}: 10.0.0.1@C1: TagA, 10.0.0.1@C2: TagB; 2 queues lose messages: broker-a:0, broker-a:1",
        "next_step": "let all members subscribe alike, or give each subscription a group of its own",
    }
    assert [(row["broker"], row["queue"], row["owner"], row["state"]) for row in told["queues"][:2]] == [
        ("broker-a", 0, "10.0.0.1@C1", "loses messages"),
        ("broker-a", 1, "10.0.0.1@C1", "loses messages"),
    ]
    assert [(row["member"], row["subscription"], row["state"]) for row in told["subscriptions"]] == [
        (None, "TagB", "kept by brokers"),
        ("10.0.0.1@C1", "TagA", "differs"),
        ("10.0.0.1@C2", "TagB", "fine"),
    ]


def test_a_group_with_a_backlog_tells_when_it_expires(visitor: Visitor) -> None:
    facts = visitor.get(f"/groups/{OFFLINE}.json").json["facts"]
    assert 0 < facts["retention_seconds"] <= 72 * 3600


def test_a_topic_has_its_queues_and_readers(visitor: Visitor, cluster: EmbeddedCluster) -> None:
    told = visitor.get(f"/topics/{TOPIC}.json").json
    with Admin(name_server=cluster.name_server) as admin:
        status = admin.topics.status(TOPIC)
    assert [(row["broker"], row["queue"], row["end_offset"]) for row in told["queues"]] == [
        (row.broker_name, row.queue_id, row.max_offset) for row in status
    ]
    assert {row["group"] for row in told["groups"]} == {MIXED, OFFLINE}


def test_topics_are_listed_without_those_of_groups_unless_asked_for(visitor: Visitor) -> None:
    names = [row["topic"] for row in visitor.get("/topics.json").json["topics"]]
    assert TOPIC in names
    assert f"%RETRY%{MIXED}" not in names
    assert f"%RETRY%{MIXED}" in [row["topic"] for row in visitor.get("/topics.json?all=1").json["topics"]]
    assert visitor.get(f"/topics/%25RETRY%25{MIXED}").status == 200


@pytest.mark.parametrize("path", ["/groups?q=ARCH&sort=group", f"/topics/%25RETRY%25{MIXED}", "/?sort=behind"])
def test_a_page_leads_to_its_data_with_the_same_parameters(visitor: Visitor, path: str) -> None:
    links = re.findall(r'href="([^"]+)">(JSON|CSV)</a>', visitor.get(path).text)
    assert [kind for _, kind in links] == ["JSON", "CSV"]
    for link, _ in links:
        answer = visitor.get(link.replace("&amp;", "&"))
        assert answer.status == 200
        assert "ARCH" not in path or MIXED not in answer.text


def test_brokers_alarms_and_the_doctor(visitor: Visitor) -> None:
    brokers = visitor.get("/brokers.json").json["brokers"]
    assert [(row["broker"], row["role"], row["version"]) for row in brokers] == [
        ("broker-a", "master", "V4_9_4"),
        ("broker-b", "master", "V4_9_4"),
    ]
    assert len(visitor.get("/alarms.json").json["notices"]) == 2
    found = {notice["title"].split(":")[0] for notice in visitor.get("/doctor.json").json["notices"]}
    assert found == {"group-offline", "subscription-conflict"}


def test_tables_are_searched_sorted_and_written_as_csv(visitor: Visitor) -> None:
    assert [row["group"] for row in visitor.get("/groups.json?q=ARCH").json["groups"]] == [OFFLINE]
    assert [row["group"] for row in visitor.get("/groups.json?sort=group").json["groups"]] == [OFFLINE, MIXED]
    assert [row["group"] for row in visitor.get("/groups.json?sort=-group").json["groups"]] == [MIXED, OFFLINE]
    # Unknown values come last, in both directions.
    for sort in ("lag_seconds", "-lag_seconds", "nonsense", ""):
        assert len(visitor.get(f"/groups.json?sort={sort}").json["groups"]) == 2
    assert visitor.get("/groups.json?sort=-lag_seconds").json["groups"][0]["group"] == OFFLINE
    rows = list(csv.DictReader(visitor.get("/groups.csv?sort=group").text.splitlines()))
    assert [(row["group"], row["state"]) for row in rows] == [(OFFLINE, "offline"), (MIXED, "conflict")]
    html = visitor.get("/groups?q=nothing-like-this").text
    assert "No rows." in html
    assert 'value="nothing-like-this"' in html


@pytest.mark.parametrize("page", ["0", "-1", "999", "x", "9" * 400])
def test_a_page_that_is_none_is_the_nearest(visitor: Visitor, page: str) -> None:
    assert visitor.get(f"/groups?page={page}").status == 200


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/groups/nobody", 404, "%RETRY%nobody"),
        ("/topics/nothing", 404, "No topic route info in name server for the topic: nothing"),
        ("/topics/nothing.json", 404, "No topic route info"),
        ("/topics/nothing.csv", 404, "No topic route info"),
        ("/nowhere", 404, "Not Found"),
    ],
)
def test_what_is_not_there_is_told(visitor: Visitor, path: str, status: int, text: str) -> None:
    answer = visitor.get(path)
    assert answer.status == status
    assert text in answer.text


def test_pages_are_in_chinese_as_the_browser_or_the_visitor_wants(visitor: Visitor) -> None:
    assert '<html lang="zh">' in visitor.get("/groups", Accept_Language="zh-CN,zh;q=0.9,en;q=0.8").text
    assert "消费组" in visitor.get("/groups?lang=zh").text
    assert '<html lang="zh">' in visitor.get("/topics").text  # it stays so
    assert '<html lang="en">' in visitor.get("/groups?lang=en", Accept_Language="zh").text


def test_names_of_members_are_escaped(visitor: Visitor, cluster: EmbeddedCluster, dashboard: Dashboard) -> None:
    evil = "<script>alert(1)</script>\"'\x1b[2J"
    queue = MessageQueue(TOPIC, "broker-a", 0)
    own = [wants(TOPIC, "<img src=x onerror=alert(1)>", 3)]
    with online(cluster.name_server, evil, "evil", own, [queue]), online(cluster.name_server, "C2", "evil", []):
        until(lambda: "evil" in visitor.get("/groups.json").text)
        pages = [visitor.get(path).text for path in ("/", "/groups/evil", "/groups", "/alarms", "/doctor")]
    for html in pages:
        assert not re.search(r"<script>|<img|\x1b", html)
    assert "&lt;script&gt;alert(1)" in pages[1]
    until(
        lambda: (
            not [row for row in visitor.get("/groups.json").json["groups"] if row["members"] and row["group"] == "evil"]
        )
    )


def test_a_cluster_that_is_gone_is_told_with_the_last_look() -> None:
    with (
        EmbeddedCluster(config=CAREFUL) as cluster,
        Proxy(cluster.name_server) as name_server,
        Dashboard(ClientConfig(name_server=name_server.address), port=0, password=PASSWORD, interval=0.1) as running,
        Visitor(running.address) as visitor,
    ):
        visitor.log_in(PASSWORD)
        assert visitor.get("/overview.json").json["notices"] == []
        name_server.down()
        until(lambda: visitor.get("/overview.json").json["notices"])
        told = visitor.get("/overview.json").json
        assert [notice["level"] for notice in told["notices"]] == ["unknown"]
        assert told["facts"]["brokers"] == 1
        assert visitor.get("/topics/TBW102").status == 502
        html = visitor.get("/").text
    assert "Unknown: Not told" in html


def test_a_port_in_use_and_a_cluster_that_is_not_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(RemotingError, match=f"dashboard at 127.0.0.1:{port}: "):
            Dashboard(ClientConfig(name_server="127.0.0.1:1"), port=port).start()
    with pytest.raises(RemotingError):
        Dashboard(ClientConfig(name_server="127.0.0.1:1"), port=0).start()


#: Names of classes and figures in code: what is not translated would be shown so.
KEY = re.compile(
    r"<(?:h1|h2|dt|th|label|button|option|figcaption|caption)[^>]*>(?:<a[^>]*>)?\s*([a-z]+[_-][a-z_-]+)\s*<"
)


@pytest.mark.parametrize(
    "path", [*(path for path in MENU), "/groups/billing", "/topics/orders", "/messages?topic=orders"]
)
def test_every_page_has_its_words_in_both_languages(visitor: Visitor, path: str) -> None:
    for language in ("zh", "en"):
        html = visitor.get(f"{path}{'&' if '?' in path else '?'}lang={language}").text
        assert f'<html lang="{language}">' in html
        assert set(KEY.findall(html)) <= NAMES


#: Names that alarms and the doctor have for findings, in all languages.
NAMES = {"subscription-conflict", "group-offline"}
