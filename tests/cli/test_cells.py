"""Values as text, hostile ones above all."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqfast.cells import one_line, size_text, table_cell, time_text
from rmqfast.cli.output import csv_cell, screen_cell
from rmqfast.store.json_lines import json_text

HOSTILE = [
    "\x1b[2J\x1b[H",  # clears the screen
    "\x1b]0;title\x07",  # sets the title
    "\x1b]8;;http://example.org\x1b\\link\x1b]8;;\x1b\\",
    "\x9b31m",  # a C1 code
    "a\rb",
    "a\nb",
    "\u202egnp.exe",  # turns what follows around
    "\u2028line",
    "\x00\x07\x08\x7f",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_table_cell_of_hostile_text_has_one_line_and_nothing_that_a_terminal_obeys(text: str) -> None:
    for cell in (table_cell("tags", text), table_cell("body", text.encode()), table_cell("properties", {text: text})):
        assert all(c.isprintable() for c in cell), cell


def test_text_of_every_language_stays_as_it_is() -> None:
    assert one_line("标签 ταγ résumé 🚀 'quoted' [red]") == "标签 ταγ résumé 🚀 'quoted' [red]"


@given(st.text())
def test_one_line_only_takes_away(text: str) -> None:
    cleaned = one_line(text)
    assert len(cleaned) <= len(text)
    assert not set(cleaned) & {chr(c) for c in (*range(32), *range(0x7F, 0xA0))}
    assert one_line(cleaned) == cleaned


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_a_csv_cell_that_a_spreadsheet_would_run_gets_an_apostrophe(text: str) -> None:
    assert csv_cell(text) == f"'{text}"


def test_numbers_in_csv_stay_numbers() -> None:
    assert csv_cell(-1) == -1
    assert csv_cell(None) is None


@given(st.dictionaries(st.text(), st.text()))
def test_json_is_one_line_of_printable_text_and_reads_back(properties: dict[str, str]) -> None:
    text = json_text(properties)
    assert len(text.splitlines()) == 1
    assert not set(text) & {chr(c) for c in (*range(32), *range(0x7F, 0xA0))}
    assert json.loads(text) == properties


def test_bytes_are_base64_in_json_and_csv() -> None:
    assert json_text({"body": b"\xff\x00"}) == '{"body":"/wA="}'
    assert csv_cell(b"\xff\x00") == "/wA="


#: What moves a cursor, turns a line around, hides, or is half a character.
HOSTILE = [
    "\x1b[2J",
    "a\u202eb",
    "\u2066x",
    "\u200b",
    "\ufeff",
    "\U000e0041",
    "\x9b31m",
    "\ud800",
    "\u2028",
    "\r",
    "\x7f",
    "\xad",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_json_has_nothing_that_a_terminal_would_act_on_and_is_the_same_text(text: str) -> None:
    line = json_text({"keys": text})
    assert all(character.isprintable() for character in line)
    assert line.encode()
    assert json.loads(line) == {"keys": text}


def test_json_leaves_no_character_that_is_not_visible() -> None:
    hidden = [
        chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) in {"Cc", "Cf", "Cs", "Zl", "Zp"}
    ]
    assert not set(hidden) & set(json_text("".join(hidden)))


@pytest.mark.parametrize("text", HOSTILE)
def test_csv_escapes_on_a_terminal_only(text: str) -> None:
    assert csv_cell(f"a{text}") == f"a{text}"
    shown = screen_cell(f"a{text}")
    assert isinstance(shown, str)
    assert shown == "a" + "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    assert shown.isprintable()


@pytest.mark.parametrize("value", ["plain", "列 é", 5, None, b"\x1b", "=1+1"])
def test_csv_is_the_same_on_a_terminal_where_nothing_is_hidden(value: object) -> None:
    assert screen_cell(value) == csv_cell(value)


def test_what_is_no_json_value_is_refused() -> None:
    with pytest.raises(TypeError, match="expected bytes, got object"):
        json_text(object())


def test_a_body_that_is_no_text_is_shown_in_hexadecimal_with_its_size() -> None:
    assert table_cell("body", b"\xff\xfe" * 1024) == f"0x{'fffe' * 16} (2.0 KiB)"


def test_a_body_cut_within_a_character_is_still_text() -> None:
    assert table_cell("body", ("a" * 159 + "列" * 9).encode()) == "a" * 159


def test_times_are_utc_with_milliseconds() -> None:
    assert time_text(1_795_231_240_967) == "2026-11-21 03:20:40.967Z"
    assert table_cell("store_timestamp", 1_795_231_240_967) == "2026-11-21 03:20:40.967Z"
    assert time_text(-1) == "1969-12-31 23:59:59.999Z"


def test_rates_have_one_digit_behind_the_point() -> None:
    assert [table_cell(f"{what}_tps", 495.2947003467063) for what in ("in", "out", "consume")] == ["495.3"] * 3
    assert table_cell("seconds", 2.004) == "2.004"


def test_a_time_that_no_calendar_has_is_shown_as_its_number() -> None:
    assert time_text(2**63 - 1) == str(2**63 - 1)


def test_sizes_have_the_unit_that_reads_best() -> None:
    sizes = [size_text(n) for n in (0, 1023, 1024, 5 << 20, 3 << 30, 2 << 40)]
    assert sizes == ["0 B", "1023 B", "1.0 KiB", "5.0 MiB", "3.0 GiB", "2.0 TiB"]
