"""The lists of keys in `docs/broker.md`: `python -m tests.embedded.config_table` writes them anew."""

from __future__ import annotations

import textwrap
from pathlib import Path

from rmqfast.broker.configuration.config_keys import CONFIG_KEYS, JVM_KEYS, OWN_KEYS, UNUSED_KEYS, ConfigKey, Effect
from tests.marked import with_part

DOC = Path(__file__).parents[2] / "docs" / "broker.md"
BEGIN, END = "<!-- keys: python -m tests.embedded.config_table -->", "<!-- end of keys -->"
#: Defaults that are this machine's.
OF_THE_MACHINE = {"rocketmqHome": "`$ROCKETMQ_HOME`", "brokerName": "the host's name", "storePathRootDir": "`~/store`"}


def tables() -> str:
    """The keys by when they take effect, then those that do not."""
    parts = []
    for effect, title in ((Effect.START, "At the start"), (Effect.LIVE, "At once, also while the broker runs")):
        rows = [row(key) for key in CONFIG_KEYS.values() if key.effect is effect]
        parts.append(f"**{title}**\n\n| key | value | default |\n| --- | --- | --- |\n" + "".join(rows))
    unused = ", ".join(f"`{key}`" for key in sorted(UNUSED_KEYS, key=str.lower))
    parts.append(textwrap.fill(f"Accepted, without effect here: {unused}.", 140, break_on_hyphens=False) + "\n")
    return "\n".join(parts)


def row(key: ConfigKey) -> str:
    whose = " (ours)" if key.name in OWN_KEYS else " (of the JVM, there)" if key.name in JVM_KEYS else ""
    name = f"`{key.name}`{whose}"
    default = f"`{key.default}`" if key.default else ""
    return f"| {name} | {key.kind.value} | {OF_THE_MACHINE.get(key.name, default)} |\n"


def with_tables(text: str) -> str:
    """The document with the tables as they are now."""
    return with_part(text, BEGIN, END, f"\n\n{tables()}\n")


if __name__ == "__main__":
    new = DOC.with_suffix(".new")
    new.write_text(with_tables(DOC.read_text(encoding="utf-8")), encoding="utf-8")
    new.replace(DOC)
