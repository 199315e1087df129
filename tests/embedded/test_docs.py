"""`docs/broker.md` says which keys take effect, as the code has it."""

from __future__ import annotations

from rmqfast.broker.configuration.config_keys import CONFIG_KEYS
from rmqfast.remoting.tls import TLS_KEYS

from .config_table import DOC, with_tables


def test_the_keys_in_the_document_are_those_of_the_code() -> None:
    text = DOC.read_text(encoding="utf-8")
    assert with_tables(text) == text, "python -m tests.embedded.config_table"


def test_each_key_that_takes_effect_stands_there_once() -> None:
    text = DOC.read_text(encoding="utf-8")
    for key in CONFIG_KEYS:
        assert text.count(f"\n| `{key}`") == 1, key


def test_each_key_of_tls_is_told_of() -> None:
    text = DOC.read_text(encoding="utf-8")
    assert [key for key in TLS_KEYS if f"`{key}" not in text] == []
