"""The image of `rmqfast server`: what its Dockerfile starts, asks and exposes, as processes of this machine."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from rmqfast.broker import BrokerConfig
from rmqfast.broker.ports import VIP_DISTANCE
from tests.cli.command_line import COMMAND, run
from tests.cli.test_server import end, serving
from tests.embedded.client import pull, send

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
PAGE = (ROOT / "docs/broker.md").read_text().partition("\n## In a container\n")[2].partition("\n## ")[0]

TESTS_PAGE = (ROOT / "docs/testing.md").read_text()


def arguments(instruction: str) -> list[str]:
    """Those of an instruction in its form of JSON, behind its options."""
    match = re.search(rf"^{instruction}\b[^\[\n]*(\[.*\])$", DOCKERFILE, re.MULTILINE)
    assert match is not None, instruction
    parsed: list[str] = json.loads(match[1])
    return parsed


def compose() -> dict[str, Any]:
    """The file of the page."""
    parsed: dict[str, Any] = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[0])
    return parsed


def test_what_the_image_starts_serves_is_healthy_and_ends_cleanly(tmp_path: Path) -> None:
    program, *words = arguments("ENTRYPOINT") + arguments("CMD")
    assert program == "rmqfast"
    words = [word.replace("/store", str(tmp_path / "store")) for word in words]
    with serving(*words, "--namesrv-port", 0, "--broker-port", 0) as (process, told):
        assert send(told["broker"], "orders", b"paid").code == 0
        assert b"paid" in pull(told["broker"], "orders").body
        environment = {"RMQFAST_NAME_SERVER": told["name_server"], "XDG_CONFIG_HOME": str(tmp_path)}
        asked = [*COMMAND, *arguments("HEALTHCHECK")[1:]]
        done = subprocess.run(asked, env=os.environ | environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert told["broker"] in done.stdout
        assert end(process) == f"store: {tmp_path / 'store'}\nstopped\n"
        done = subprocess.run(asked, env=os.environ | environment, capture_output=True, text=True, check=False)
        assert done.returncode != 0
    assert (tmp_path / "store/commitlog").is_dir()


def test_the_ports_are_those_of_the_servers() -> None:
    exposed = re.search(r"^EXPOSE (.*)$", DOCKERFILE, re.MULTILINE)
    asked = re.search(r"RMQFAST_NAME_SERVER=127.0.0.1:(\d+)", DOCKERFILE)
    assert exposed is not None
    assert asked is not None
    assert f"listenPort={asked[1]}" in run("namesrv", "-p").stdout.splitlines()
    broker = BrokerConfig().number("listenPort")
    own = {int(asked[1]), broker, broker - VIP_DISTANCE, BrokerConfig().number("haListenPort")}
    assert {int(port) for port in exposed[1].split()} == own


def test_the_compose_file_of_the_page_has_a_configuration_that_serves(tmp_path: Path) -> None:
    file = tmp_path / "broker.conf"
    (service,) = compose()["services"].values()
    (address,) = [network["ipv4_address"] for network in service["networks"].values()]
    text = compose()["configs"]["broker"]["content"]
    words = [str(file) if word == "/broker.conf" else word for word in service["command"]]
    words = [word.replace("/store", str(tmp_path / "store")) for word in words]
    file.write_text(text)
    printed = run("server", *words, "-p").stdout.splitlines()
    assert {"bindAddress=0.0.0.0", f"brokerIP1={address}", "insecureBind=true"} <= set(printed)
    # tests listen on loopback alone
    file.write_text(text.replace("0.0.0.0", "127.0.0.1").replace(address, "127.0.0.1"))  # noqa: S104 - out of there
    with serving("server", *words, "--namesrv-port", 0, "--broker-port", 0) as (process, told):
        assert send(told["broker"], "orders", b"paid").code == 0
        end(process)


def blocks_of_other_languages() -> list[str]:
    """What tests in Java, Go and Node run, by the page about tests."""
    return re.findall(r"^```(?:java|go|ts)\n(.*?)^```$", TESTS_PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("block", blocks_of_other_languages(), ids=["java", "go", "node"])
def test_what_tests_in_other_languages_start_has_a_configuration_that_serves(block: str, tmp_path: Path) -> None:
    words = re.findall(r'"(--[\w-]+|/broker\.conf)"', re.split("withCommand|WithCmd", block)[1])
    assert words == ["--config", "/broker.conf", "--insecure-bind", "--broker-port"]
    text = re.findall(r'"(bindAddress=[^"]*)"', block)[0].replace("\\n", "\n")
    (file := tmp_path / "broker.conf").write_text(text)
    command = [*(str(file) if word == "/broker.conf" else word for word in words), "0"]
    printed = run("server", *command, "-p").stdout.splitlines()
    assert {"bindAddress=0.0.0.0", "brokerIP1=127.0.0.1", "insecureBind=true"} <= set(printed)
    # tests listen on loopback alone
    file.write_text(text.replace("0.0.0.0", "127.0.0.1"))  # noqa: S104 - out of there
    with serving("server", *command, "--namesrv-port", 0) as (process, told):
        assert told["broker"].startswith("127.0.0.1:")
        assert send(told["broker"], "orders", b"paid").code == 0
        end(process)


@pytest.mark.parametrize("page", [PAGE, TESTS_PAGE], ids=["broker", "testing"])
def test_the_image_is_named_after_the_project(page: str) -> None:
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    name = urls["Repository"].removeprefix("https://github.com/")
    images = set(re.findall(r"ghcr\.io/[\w./-]+", page))
    assert images == {f"ghcr.io/{name}"}


def test_the_packages_of_the_image_are_those_of_its_extras() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    expected = {re.split(r"[^\w-]", each)[0] for name in ("cli", "broker") for each in extras[name]}
    lines = (ROOT / "requirements/image.in").read_text().splitlines()
    assert {line for line in lines if not line.startswith("#")} == expected


def test_another_processor_than_those_of_wheels_is_refused(tmp_path: Path) -> None:
    command: list[str | Path] = [ROOT / "release/image_site.sh", "riscv64", tmp_path, tmp_path, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "expected amd64 or arm64, got riscv64\n")
