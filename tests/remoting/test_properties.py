"""Java's properties: what `java.util.Properties` reads, and what `MixAll` writes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqfast.errors import ArgumentError
from rmqfast.remoting.properties import dumps, loads
from tests.wire_traffic import exchanges


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {}),
        ("a=1\nb=2", {"a": "1", "b": "2"}),
        ("a=1\r\nb=2\rc=3\n", {"a": "1", "b": "2", "c": "3"}),
        ("  # no\n\t! nor this\n\n a = 1 ", {"a": "1 "}),
        ("a 1\nb:2\nc\t=\t3\nd : = 4", {"a": "1", "b": "2", "c": "3", "d": "= 4"}),
        ("alone\n=nameless", {"alone": "", "": "nameless"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=b=c#d", {"a": "b=c#d"}),
        ("a=1\\\n   2\\\n#3", {"a": "12#3"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("\\\n# a comment after nothing\nb=2", {"b": "2"}),
        ("a\\=b\\ c=\\t\\n\\r\\f\\q\\:", {"a=b c": "\t\n\r\fq:"}),
        ("a=\\u4e2d\\u0041", {"a": "中A"}),
        ("a=1\\", {"a": "1"}),
        ("a\\", {"a": ""}),
        ("\\", {"": ""}),
        ("path=C:\\temp", {"path": "C:\temp"}),
        ("é=中", {"é": "中"}),
    ],
)
def test_properties_are_read_as_java_reads_them(text: str, found: dict[str, str]) -> None:
    assert loads(text) == found


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\u00g0", "\\u", "a=\\uD83", "a=\\u00\n41"])
def test_half_an_escape_is_refused(text: str) -> None:
    with pytest.raises(ArgumentError, match="four hexadecimal digits"):
        loads(text)


def test_properties_are_written_as_lines() -> None:
    body = next(e.response_body.decode() for e in exchanges("4.9.4") if e.name == "GET_BROKER_CONFIG")
    properties = dict(line.split("=", 1) for line in body.splitlines())
    assert len(properties) == 178
    assert dumps(properties) == body


@given(
    st.dictionaries(
        st.text("abcdefghij.Z_", min_size=1), st.text(st.characters(codec="utf-8", exclude_characters="\\"))
    )
)
def test_what_is_written_is_read_back_unless_it_begins_with_blanks(properties: dict[str, str]) -> None:
    plain = {key: value.lstrip(" \t\f=:") for key, value in properties.items() if not set("\r\n") & set(value)}
    assert loads(dumps(plain)) == plain


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_a_property_does_not_bring_another_one(end: str) -> None:
    with pytest.raises(ArgumentError, match="a property is one line"):
        dumps({"a": f"1{end}kvConfigPath=/etc/passwd"})
    with pytest.raises(ArgumentError, match="a property is one line"):
        dumps({f"a{end}b": "1"})


@given(st.text(st.sampled_from("\\ =:#!\n\r\t\fua0é")))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = loads(text)
    except ArgumentError:
        assert "\\u" in text
    else:
        assert len(found) <= len(text)
