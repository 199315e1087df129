"""Objects in a notebook: small, escaped tables without a scan."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import rmqfast
from rmqfast import AppendOptions, Damage, EmbeddedCluster, Message, MessageQueue
from rmqfast.admin import Admin
from rmqfast.html import MOST_ROWS, facts, table
from tests.golden_stores import PathOf

HOSTILE = "<script>alert('1')</script>&\x1b[31m\u202e\n"
SMALL = AppendOptions(file_size=1 << 16, queue_file_size=2000, index_slots=1000, index_entries=4000)


class Cells(HTMLParser):
    """The cells of tables, and the elements that there are."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.cells: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.cells.append("")

    def handle_data(self, data: str) -> None:
        self.cells[-1] += data


def shown(thing: Any) -> Cells:
    """A thing as a notebook shows it; it has elements of tables only, and no attribute that loads something."""
    html = thing._repr_html_()
    cells = Cells(html)
    assert cells.tags <= {"table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert cells.attributes <= {"colspan"}
    assert len(html) < 20_000
    assert not re.search(r"[\x00-\x1f\x7f\u202e]", html)
    return cells


@pytest.mark.parametrize("html", [table([HOSTILE], [[HOSTILE]], caption=HOSTILE), facts(HOSTILE, {HOSTILE: HOSTILE})])
def test_whatever_is_shown_is_escaped(html: str) -> None:
    assert "<script" not in html
    assert html.count("&lt;script&gt;alert(&#x27;1&#x27;)&lt;/script&gt;&amp;") == 3
    assert "\x1b" not in html
    assert "\u202e" not in html


def test_a_table_shows_the_first_rows_and_counts_the_others() -> None:
    cells = Cells(table(("n",), [[n] for n in range(MOST_ROWS + 5)])).cells
    assert cells[-1] == "and 5 more"
    assert str(MOST_ROWS) not in cells
    assert Cells(table(("n",), [[0]], count=1001)).cells[-1] == "and 1,000 more"


def test_a_store_shows_its_topics_and_times(golden_store: PathOf) -> None:
    with rmqfast.open_store(golden_store("basic-4.9.4")) as store:
        cells = shown(store).cells
        at = cells.index("fx_q1")
        assert cells[at : at + 5] == ["fx_q1", "1", "1259", "0", "1259"]
        assert sum(re.fullmatch(r"\d{4}-\d\d-\d\d [\d:.]+Z", cell) is not None for cell in cells) == 2
        assert "4.x" in cells
        assert "2515548" in shown(store.info()).cells
        assert "yes" in shown(store.verify()).cells
        result = shown(store.get("fx_q1", 0, 3, max_messages=2)).cells
        assert [cell for cell in result if cell in {"3", "4"}] == ["3", "4"]


def test_a_store_without_queues_is_not_read_for_its_looks(golden_store_copy: PathOf) -> None:
    path = golden_store_copy("basic-4.9.4")
    (path / "consumequeue").rename(path / "elsewhere")
    with rmqfast.open_store(path) as store:
        assert "no consume queues: topics() reads the whole log" in shown(store).cells


def test_a_scan_shows_what_it_asks_for_and_reads_nothing(golden_store: PathOf) -> None:
    with rmqfast.open_store(golden_store("basic-4.9.4")) as store:
        scan = store.scan("fx_q1", tags="Aa || BB", columns=["tags"])
    cells = shown(scan).cells
    assert [cell for cell in cells if cell] == [
        *("Scan", "topic", "fx_q1", "tags", "Aa || BB", "columns", "tags", "damage", "0"),
    ]


def test_messages_and_damage_are_shown_with_what_anybody_may_have_put_into_them(tmp_path: Path) -> None:
    message = Message("orders", HOSTILE.encode(), tags=HOSTILE, properties={HOSTILE: HOSTILE})
    assert any("<script>" in cell for cell in shown(message).cells)
    with rmqfast.open_store(tmp_path / "s", mode="a", options=SMALL) as store:
        store.append(Message("orders", HOSTILE.encode(), tags="t"))
        (stored,) = store.get("orders", 0, 0, max_messages=1).messages
        assert any("<script>" in cell for cell in shown(stored).cells)
        assert "orders" in shown(store).cells
    assert HOSTILE[:8] in "".join(shown(Damage(4, 2, HOSTILE)).cells)


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as running:
        yield running


def test_a_cluster_and_what_an_administrator_asks_are_shown(cluster: EmbeddedCluster) -> None:
    assert cluster.name_server in shown(cluster).cells
    with Admin(name_server=cluster.name_server) as admin:
        admin.create_topic("orders", 1)
        admin.create_group("cashiers")
        admin.offsets.reset("cashiers", MessageQueue("orders", "broker-a", 0), 0)
        progress = shown(admin.groups.progress("cashiers", "orders")).cells
        assert "0 messages behind, 0.0 consumed a second" in progress
        assert {"orders", "broker-a"} <= set(progress)
        explanation = admin.explain("cashiers")
        said = [*explanation.sentences, *(sentence for part in explanation.parts for sentence in part.sentences)]
        assert said
        assert set(said) <= set(shown(explanation).cells)
    assert "-" in shown(EmbeddedCluster()).cells
