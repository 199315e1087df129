"""How commands reach a guarded cluster: options, the environment, profiles; and what they say where they do not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from rmqfast import EmbeddedCluster
from tests.broker.certificates import Authority, authority, stranger
from tests.client.accounts import SECRET

from .command_line import run

__all__ = ["authority", "stranger"]

KEY = "operator"
ACCOUNTS = f"""
accounts:
- {{accessKey: {KEY}, secretKey: "{SECRET}", admin: true}}
- {{accessKey: guest-key, secretKey: "{SECRET}", defaultTopicPerm: DENY, defaultGroupPerm: DENY}}
"""


@pytest.fixture(scope="module")
def cluster(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    """A cluster that takes TLS only, and wants to know who asks."""
    home, pair = tmp_path_factory.mktemp("home"), authority.server()
    (home / "conf").mkdir()
    (home / "conf/plain_acl.yml").write_text(ACCOUNTS)
    guards = {
        "aclEnable": "true",
        "rocketmqHome": str(home),
        "tls.server.certPath": str(pair.certificate),
        "tls.server.keyPath": str(pair.key),
        "tls.client.trustCertPath": str(authority.certificate),
    }
    with EmbeddedCluster(config=guards) as running:
        yield running


@pytest.fixture
def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where profiles are looked for; nothing is there yet, nor in the environment."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("NAMESRV_ADDR", "RMQFAST_NAME_SERVER", "RMQFAST_PROFILE", "RMQFAST_ACCESS_KEY", "RMQFAST_SECRET_KEY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "rmqfast.toml"


def write(file: Path, values: Mapping[str, object], *, name: str = "default", mode: int = 0o600) -> None:
    """Adds a profile."""
    with file.open("a") as stream:
        lines = [f"{key} = {json.dumps(value, default=str)}" for key, value in values.items()]
        stream.write("\n".join([f"[profiles.{name}]", *lines, ""]))
    file.chmod(mode)


def everything(cluster: EmbeddedCluster, authority: Authority) -> dict[str, object]:
    """All that this cluster asks for."""
    account = {"access_key": KEY, "secret_key": SECRET}
    return {"name_server": cluster.name_server, **account, "tls_trust": authority.certificate}


def options(values: Mapping[str, object]) -> list[str]:
    return [word for name, value in values.items() for word in (f"--{name.replace('_', '-')}", str(value))]


def test_every_command_takes_account_and_tls_by_options_by_the_environment_and_by_a_profile(
    cluster: EmbeddedCluster, authority: Authority, profiles: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = everything(cluster, authority)
    sent = run("produce", "guarded", "one", "--create", *options(given), "-o", "json")
    assert sent.exit_code == 0, sent.output
    with monkeypatch.context() as environment:
        for name, value in given.items():
            environment.setenv(f"RMQFAST_{name.upper()}", str(value))
        got = run("consume", "guarded", "--group", "readers", "--from", "first", "--max", "1", "-o", "json")
    assert [row["body"] for row in json.loads(got.stdout)] == ["b25l"], got.output
    write(profiles, given)
    identity = json.loads(sent.stdout)[0]["offset_msg_id"]
    for words in (
        ("topic", "show", "guarded"),
        ("group", "show", "readers"),
        ("cluster", "config", "broker-a"),
        ("message", "show", "--id", identity),
        ("explain", "--id", identity),
    ):
        result = run(*words, "-o", "json")
        assert (result.exit_code, "guarded" in result.stdout or words[0] == "cluster") == (0, True), result.output


def test_an_option_wins_over_the_environment_and_that_over_the_profile(
    cluster: EmbeddedCluster, authority: Authority, profiles: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(profiles, everything(cluster, authority) | {"access_key": "of-the-profile"})
    asked = ("topic", "show", "TBW102")
    assert "No acl config for of-the-profile" in run(*asked).stderr
    monkeypatch.setenv("RMQFAST_ACCESS_KEY", "of-the-environment")
    assert "No acl config for of-the-environment" in run(*asked).stderr
    assert "No acl config for of-the-option" in run(*asked, "--access-key", "of-the-option").stderr
    assert run(*asked, "--access-key", KEY).exit_code == 0
    monkeypatch.setenv("NAMESRV_ADDR", "127.0.0.1:1")
    assert "127.0.0.1:1" in run(*asked).stderr
    monkeypatch.setenv("RMQFAST_NAME_SERVER", cluster.name_server)
    assert run(*asked, "--access-key", KEY).exit_code == 0


def test_a_profile_is_chosen_by_its_name_and_its_files_stand_beside_it(
    cluster: EmbeddedCluster, authority: Authority, profiles: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (profiles.parent / "ca.pem").write_bytes(authority.certificate.read_bytes())
    write(profiles, {"name_server": "127.0.0.1:1"})
    write(profiles, everything(cluster, authority) | {"tls_trust": "ca.pem"}, name="prod")
    assert run("topic", "list", "--profile", "prod").exit_code == 0
    monkeypatch.setenv("RMQFAST_PROFILE", "prod")
    assert run("topic", "list").exit_code == 0
    result = run("topic", "list", "--profile", "prd")
    assert (result.exit_code, result.stderr) == (
        2,
        f"error: --profile: expected a profile of {profiles}, got 'prd'; the file has default, prod\n",
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[profiles.default]\nacces_key = 'a'\n", "profile default: expected one of name_server, access_key, "),
        ("[profiles.default]\nacces_key = 'a'\n", "got the key 'acces_key'"),
        (
            "[profiles.default]\ntls = 'yes'\n",
            "profile default: tls: expected true or false, got a value of the type str",
        ),
        (
            "[profiles.default]\nsecret_key = 1234\n",
            "secret_key: expected a text in quotes, got a value of the type int",
        ),
        ("[default]\n", "expected tables [profiles.NAME], got the key 'default'"),
        ("profiles = 1\n", "expected tables [profiles.NAME], got profiles = 1"),
        ("[profiles]\ndefault = 1\n", "profile default: expected a table, got int"),
        ("[profiles.default\n", "expected TOML, got what is none: "),
        ("[profiles.default]\nname_server = '\xff'\n", "expected TOML, got what is none: "),
    ],
)
def test_a_file_that_breaks_the_rules_is_named_with_its_key_and_the_secret_is_not(
    profiles: Path, text: str, said: str
) -> None:
    profiles.write_bytes(text.encode("latin-1"))
    result = run("topic", "list")
    assert result.exit_code == 2
    assert f"error: {profiles}: " in result.stderr
    assert said in result.stderr
    assert "1234" not in result.stderr


def test_a_profile_is_asked_for_where_there_is_none(profiles: Path) -> None:
    result = run("topic", "list", "--profile", "prod")
    assert f"expected a profile of {profiles}, got 'prod'; the file is not there" in result.stderr
    result = run("topic", "list")
    assert (result.exit_code, "name_server in a profile" in result.stderr) == (2, True)


def test_a_warning_says_that_others_can_read_a_secret(
    cluster: EmbeddedCluster, authority: Authority, profiles: Path
) -> None:
    write(profiles, everything(cluster, authority), mode=0o644)
    result = run("topic", "list")
    assert result.exit_code == 0
    assert result.stderr == (
        f"warning: {profiles} holds a secret, and others on this machine can read it: chmod 600 {profiles}\n"
    )
    profiles.unlink()
    write(profiles, {"name_server": cluster.name_server, "tls_trust": authority.certificate}, mode=0o644)
    assert "holds a secret" not in run("topic", "list").stderr


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"secret_key": "wrong-secret"},
            "(the secret key comes from the profile default of ",
        ),
        ({"access_key": "nobody"}, "(the access key comes from the profile default of "),
        (
            {"access_key": None, "secret_key": None},
            "give access_key and secret_key (--access-key, RMQFAST_ACCESS_KEY, or",
        ),
        ({"tls": False}, "a server that takes TLS only ends others so: --tls, RMQFAST_TLS, or tls in a profile of "),
        ({"access_key": "guest-key"}, "take another account, or have the right added in plain_acl.yml"),
    ],
)
def test_what_is_refused_says_the_next_step(
    cluster: EmbeddedCluster, authority: Authority, profiles: Path, changed: dict[str, object], said: str
) -> None:
    values = everything(cluster, authority) | changed
    write(profiles, {name: value for name, value in values.items() if value is not None})
    for words in (("produce", "refused", "x", "--create"), ("consume", "TBW102", "--group", "refused")):
        result = run(*words)
        assert result.exit_code != 0
        assert said in result.stderr
        assert "wrong-secret" not in result.output


def test_who_signs_the_server_has_to_be_trusted(
    cluster: EmbeddedCluster, authority: Authority, stranger: Authority, profiles: Path
) -> None:
    write(profiles, everything(cluster, authority) | {"tls_trust": stranger.certificate})
    result = run("topic", "list")
    assert result.exit_code == 3
    assert "who is trusted comes from the profile" in result.stderr
    assert run("topic", "list", "--no-tls-verify").exit_code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--tls", "expected --tls-trust, RMQFAST_TLS_TRUST, or tls_trust in a profile of"),
        ("--tls-trust ca.pem --tls-key my.key", "expected --tls-certificate, "),
        ("--access-key a", "expected --secret-key, RMQFAST_SECRET_KEY, or secret_key in a profile of"),
        ("--secret-key a", "for secret_key, which comes from --secret-key"),
    ],
)
def test_half_of_an_account_or_of_tls_is_refused(profiles: Path, words: str, said: str) -> None:
    assert not profiles.exists()
    result = run("topic", "list", "-n", "127.0.0.1:1", *words.split())
    assert result.exit_code == 2
    assert said in result.stderr
