"""What `rmqfast produce` reads from standard input: no line is lost without a word."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from typer.testing import CliRunner, Result

from rmqfast import EmbeddedCluster
from rmqfast.cli.app import app


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as cluster:
        yield cluster


def produced(cluster: EmbeddedCluster, text: str, *words: str) -> Result:
    command = ["produce", "lines", "--create", "--name-server", cluster.name_server, "-o", "jsonl", *words]
    return CliRunner().invoke(app, command, input=text, prog_name="rmqfast")


@pytest.mark.parametrize(("text", "number"), [("a\nb\n\nc\n", 3), ("\n", 1), ("a\r\n\r\nb", 2), ("a\n\n\n", 2)])
def test_a_blank_line_ends_it_with_its_number(cluster: EmbeddedCluster, text: str, number: int) -> None:
    done = produced(cluster, text)
    assert (done.exit_code, done.stdout.count("\n")) == (2, number - 1), done.output
    assert f"line {number} of standard input: expected a message, got a blank line" in done.stderr
    assert "all lines before it were sent" in done.stderr


def test_blank_lines_that_are_passed_over_are_counted(cluster: EmbeddedCluster) -> None:
    done = produced(cluster, "a\n\n\nb\n \n", "--skip-blank")
    assert (done.exit_code, done.stdout.count("\n")) == (0, 3), done.output
    assert "2 blank lines were passed over" in done.stderr
    assert "blank" not in produced(cluster, "a\nb", "--skip-blank").stderr


def test_a_line_that_cannot_be_sent_is_told_with_its_number(cluster: EmbeddedCluster) -> None:
    done = produced(cluster, f"a\nb\n{'x' * (5 << 20)}\nc\n")
    assert (done.exit_code != 0, done.stdout.count("\n")) == (True, 2), done.output
    assert "line 3 of standard input" in done.stderr


def test_an_argument_that_cannot_be_sent_is_told_with_its_number(cluster: EmbeddedCluster) -> None:
    done = produced(cluster, "", "a", "")
    assert (done.exit_code != 0, done.stdout.count("\n")) == (True, 1), done.output
    assert "BODY 2" in done.stderr
