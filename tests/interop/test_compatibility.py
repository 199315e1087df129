"""The page of compatibility, and the C++ client on both brokers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.interop import differences
from tests.interop.compatibility import Result, examine, table
from tests.interop.outsiders import NotInstallableError, Outsider, Rows
from tests.interop.outsiders.outsider import install_once

FINE: list[Any] = [{"kind": "received", "body": "m0"}]
FAILED: list[Any] = [{"failed": "0 of 1 messages came"}]


def outsider(name: str = "client") -> Outsider:
    return Outsider(name, "1.0", "sends one message", lambda: None, lambda _: {})


def result(ours: list[Any], of_4: list[Any], of_5: list[Any]) -> Result:
    rows: dict[str, Rows] = {"ours": {"push": ours}, "4.9.4": {"push": of_4}, "5.3.3": {"push": of_5}}
    return Result(outsider(), {**rows, "5.5.0": {"push": of_5}})


def test_rows_that_are_equal_everywhere_pass_everywhere() -> None:
    page = table([result(FINE, FINE, FINE)])
    assert "| `client` | 1.0 | sends one message | 1 of 1 | 1 of 1 | 1 of 1 | 1 of 1 |" in page
    assert page.endswith("Nothing.\n")


def test_rows_that_differ_from_the_oldest_real_broker_do_not_pass_and_are_told() -> None:
    page = table([result([*FINE, *FINE], FINE, FINE)])
    assert "| 0 of 1 | 1 of 1 | 1 of 1 | 1 of 1 |" in page
    assert "- `client` on our broker, `push`: not explained yet." in page


def test_what_the_oldest_broker_cannot_do_is_held_against_the_next_one() -> None:
    page = table([result(FINE, FAILED, FINE)])
    assert "| 1 of 1 | 0 of 1 | 1 of 1 | 1 of 1 |" in page


def test_what_fails_everywhere_passes_nowhere() -> None:
    assert "| 0 of 1 | 0 of 1 | 0 of 1 | 0 of 1 |" in table([result(FAILED, FAILED, FAILED)])


def test_a_difference_is_told_with_what_explains_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(differences, "EXPLAINED", (("cl*", "5.*", "push", "it counts twice"),))
    page = table([result(FINE, FINE, [*FINE, *FINE])])
    assert "- `client` on RocketMQ 5.3.3 and RocketMQ 5.5.0, `push`: it counts twice." in page


def test_an_outsider_that_cannot_be_installed_is_told_with_the_reason(tmp_path: Path) -> None:
    def install() -> None:
        install_once(tmp_path / "there", [], ("sh", "-c", "echo no such package >&2; exit 3"))

    cannot = Outsider("client", "1.0", "nothing", install, lambda _: {})
    with pytest.raises(NotInstallableError, match="sh ended with 3: no such package"):
        install()
    assert "| not installable: sh ended with 3: no such package |" in table(examine([cannot]))


def test_an_installation_is_done_once_and_again_where_its_sources_change(tmp_path: Path) -> None:
    source, done = tmp_path / "requirements", tmp_path / "done"
    source.write_text("one")
    for _ in range(2):
        install_once(tmp_path / "there", [source], ("sh", "-c", f"echo x >> {done}"))
    assert done.read_text() == "x\n"
    (tmp_path / "there/.installed").unlink()
    install_once(tmp_path / "there", [source], ("sh", "-c", f"echo x >> {done}"))
    assert done.read_text() == "x\nx\n"
