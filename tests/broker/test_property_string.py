"""The text of properties, as RocketMQ reads and writes it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from rmqfast.broker.messages.stored_message import in_map_order, parse_properties, write_properties
from tests.broker.memory_store import records_of
from tests.reference import properties as reference

NAMES = st.text(max_size=4)


def test_the_order_is_that_of_java() -> None:
    names = ["zeta", "TAGS", "KEYS", "alpha", "UNIQ_KEY", "DELAY", "WAIT", "REAL_TOPIC", "REAL_QID"]
    # as DefaultMessageStore of 4.9.4 wrote them
    wanted = "zeta REAL_TOPIC KEYS alpha UNIQ_KEY DELAY WAIT TAGS REAL_QID"
    assert " ".join(in_map_order(dict.fromkeys(names, "1"))) == wanted


def test_the_texts_of_a_real_broker_are_written_again_as_they_were(golden_store: Callable[[str], Path]) -> None:
    texts = [one.property_bytes for one, _ in records_of((golden_store("delaytx-4.9.4") / "commitlog").iterdir())]
    assert len(texts) == 177
    assert [write_properties(parse_properties(text.decode())).encode() for text in texts] == texts


@given(st.text(alphabet="ab\x01\x02é😀", max_size=60))
def test_any_text_is_read_as_the_reference_reads_it(text: str) -> None:
    assert parse_properties(text) == reference.decode(text.encode())


@given(st.dictionaries(NAMES, NAMES, max_size=40))
def test_the_order_has_all_properties_and_is_kept_by_a_second_map(properties: dict[str, str]) -> None:
    ordered = in_map_order(properties)
    assert ordered == properties
    assert list(in_map_order(ordered)) == list(ordered)
