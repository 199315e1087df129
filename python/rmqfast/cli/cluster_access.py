"""Reaches a cluster: profiles, common options, confirmation, and suggestions for unknown names."""

from __future__ import annotations

import difflib
import functools
import inspect
import os
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from rmqfast.admin import Admin, Snapshot
from rmqfast.cli.output import Form, say, write
from rmqfast.client.instance import ClientConfig, ClientErrorCode
from rmqfast.errors import ArgumentError, ClientError, ResponseError, RmqError, UnknownTopicError
from rmqfast.paths import local_path
from rmqfast.remoting import ResponseCode, TlsOptions
from rmqfast.system import home_directory

DEFAULT = "default"
SECRETS = ("secret_key", "security_token")
TEXTS = ("name_server", "access_key", *SECRETS)
PATHS = ("tls_trust", "tls_certificate", "tls_key")
FLAGS = ("tls", "tls_verify", "tls_check_host")
KEYS = (*TEXTS, FLAGS[0], *PATHS, *FLAGS[1:])
# The read permissions of the file's group and of all other users.
READ_BY_OTHERS = 0o044


@dataclass(frozen=True, slots=True)
class Profile:
    """Settings of a cluster in the file of profiles."""

    name: str
    file: Path
    values: Mapping[str, str | bool] = field(default_factory=dict, repr=False)


def load_profile(name: str | None = None, file: Path | None = None) -> Profile:
    """Returns the profile with a name, of the user's file unless told. Without a name, `default`, which may be missing.

    Raises:
        ArgumentError: The profile does not exist, or the file is invalid.
    """
    file = profile_file() if file is None else file
    profiles = _read(file)
    if name is None and DEFAULT not in profiles:
        return Profile(DEFAULT, file)
    name = DEFAULT if name is None else name
    if name not in profiles:
        content = f"has {', '.join(sorted(profiles))}" if profiles else "has none" if file.exists() else "is not there"
        raise ArgumentError(f"--profile: expected a profile of {file}, got {name!r}; the file {content}")
    return Profile(name, file, _values(profiles[name], f"{file}: profile {name}", file.parent))


def profile_file() -> Path:
    """Returns the path of the profiles, below `XDG_CONFIG_HOME` or `~/.config`."""
    # The XDG specification ignores relative paths.
    home = os.environ.get("XDG_CONFIG_HOME") or ""
    folder = Path(home) if home.startswith("/") else (home_directory() or Path("~")) / ".config"
    return folder / "rmqfast.toml"


def _read(file: Path) -> Mapping[str, object]:
    """Returns the profiles of the file as TOML values. Empty if the file does not exist."""
    if not file.is_absolute():
        return {}  # an account without a home directory
    try:
        with file.open("rb") as stream:
            # The mode of the opened file, since its name may refer to another file by now.
            mode = os.fstat(stream.fileno()).st_mode
            content = tomllib.load(stream)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ArgumentError(f"{file}: expected a file that can be read, got {error.strerror}") from error
    except ValueError as error:
        raise ArgumentError(f"{file}: expected TOML, got what is none: {error}") from error
    unknown, profiles = sorted(set(content) - {"profiles"}), content.get("profiles", {})
    if unknown:
        raise ArgumentError(f"{file}: expected tables [profiles.NAME], got the key {unknown[0]!r}")
    if not isinstance(profiles, dict):
        raise ArgumentError(f"{file}: expected tables [profiles.NAME], got profiles = {profiles!r}")
    if mode & READ_BY_OTHERS and any(isinstance(each, dict) and set(each) & set(SECRETS) for each in profiles.values()):
        say(f"warning: {file} holds a secret, and others on this machine can read it: chmod 600 {file}")
    return profiles


def _values(profile: object, place: str, folder: Path) -> dict[str, str | bool]:
    if not isinstance(profile, dict):
        raise ArgumentError(f"{place}: expected a table, got {type(profile).__name__}")
    for key, value in profile.items():
        if key not in KEYS:
            raise ArgumentError(f"{place}: expected one of {', '.join(KEYS)}, got the key {key!r}")
        kind, expected = (bool, "true or false") if key in FLAGS else (str, "a text in quotes")
        if not isinstance(value, kind):  # do not print the value, which may be a secret
            raise ArgumentError(f"{place}: {key}: expected {expected}, got a value of the type {type(value).__name__}")
    try:
        return {
            # Relative paths start at the folder of the file.
            key: str(folder / local_path(value, key).expanduser()) if key in PATHS else value
            for key, value in profile.items()
        }
    except RuntimeError as error:
        raise ArgumentError(f"{place}: expected a path, got one below a home that is not there") from error


_UNKNOWN = frozenset({ResponseCode.TOPIC_NOT_EXIST, ClientErrorCode.NOT_FOUND_TOPIC_EXCEPTION})
_RETRY, _DEAD = "%RETRY%", "%DLQ%"
_MOST = 3


def suggestion(error: RmqError, arguments: Mapping[str, object], config: Callable[[], ClientConfig]) -> str | None:
    """Returns a suggestion if an error says that a topic does not exist. `None` for other errors.

    `arguments` are those of the failed command, with its `topic` and `group`; `config` makes the client's settings.
    """
    if isinstance(error, UnknownTopicError):
        return "`rmqfast topic list` lists the topics"
    code = error.code if isinstance(error, ResponseError) else getattr(error, "response_code", None)
    if code not in _UNKNOWN or not isinstance(error, ResponseError | ClientError):
        return None
    # An unknown group appears as its missing retry topic.
    is_group = _RETRY in str(error) or _DEAD in str(error)
    wanted = arguments.get("group" if is_group else "topic")
    if not isinstance(wanted, str):
        return None
    try:
        # Topics are only listed after an error, so that a correct name costs nothing.
        with Admin(config=config()) as admin:
            topics = admin.topics.all()
    except RmqError:
        return None  # an account may use a topic without the right to list topics
    names = (topic.removeprefix(_RETRY) for topic in topics if topic.startswith("%") == is_group)
    near = near_names(wanted, names)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return None if is_group else "`rmqfast topic list` lists the topics"


def unknown_topic(topic: str, step: str) -> ClientError:
    """Returns the error for a topic that does not exist."""
    code = ClientErrorCode.NOT_FOUND_TOPIC_EXCEPTION
    return ClientError(f"no broker of this cluster has the topic {topic}", response_code=code, next_step=step)


def near_names(wanted: str, names: Iterable[str]) -> list[str]:
    """Returns the most similar names, at most three."""
    by_folded = {name.casefold(): name for name in names}
    return [by_folded[each] for each in difflib.get_close_matches(wanted.casefold(), by_folded, _MOST)]


#: Columns of a client, as a broker knows it.
CONNECTION_COLUMNS = ("client_id", "client_addr", "language", "version")
Cluster = Annotated[str | None, typer.Option("-c", "--cluster", help="The cluster. Default: all.")]
Yes = Annotated[bool, typer.Option("--yes", help="Make the change; otherwise only show it.")]


def _option(*names: str, text: str, variables: str | list[str] | None = None) -> Any:
    variable = "RMQFAST_" + names[-1].split("/")[0].lstrip("-").replace("-", "_").upper()
    return typer.Option(*names, help=text, envvar=variables or variable)


@dataclass(frozen=True, kw_only=True)
class AccessOptions:
    """Settings of a cluster, as given by command line and environment. All but `profile` may be in a profile, too."""

    profile: Annotated[str | None, _option("--profile", text="Of ~/.config/rmqfast.toml; `default` without it.")] = None
    name_server: Annotated[
        str | None,
        _option(
            "-n",
            "--name-server",
            text="host:port, several separated by ';'.",
            variables=["RMQFAST_NAME_SERVER", "NAMESRV_ADDR"],
        ),
    ] = None
    access_key: Annotated[str | None, _option("--access-key", text="The account.")] = None
    secret_key: Annotated[
        str | None,
        _option("--secret-key", text="Its secret. Here `ps` shows it to everybody: take the variable or a profile."),
    ] = None
    security_token: Annotated[str | None, _option("--security-token", text="Goes along; as secret as the key.")] = None
    tls: Annotated[bool | None, _option("--tls/--no-tls", text="TLS; each --tls option asks for it.")] = None
    tls_trust: Annotated[str | None, _option("--tls-trust", text="PEM file of the authorities to trust.")] = None
    tls_certificate: Annotated[str | None, _option("--tls-certificate", text="PEM file: who you are.")] = None
    tls_key: Annotated[str | None, _option("--tls-key", text="PEM file: the key of that certificate.")] = None
    tls_verify: Annotated[
        bool | None, _option("--tls-verify/--no-tls-verify", text="Whether servers have to prove who they are.")
    ] = None
    tls_check_host: Annotated[
        bool | None, _option("--tls-check-host/--no-tls-check-host", text="Whether it has to be the host's name, too.")
    ] = None


OPTIONS = tuple(option.name for option in fields(AccessOptions))


@dataclass(frozen=True)
class Access:
    """The settings with which a command reaches its cluster.

    `values` are the settings by the names of `AccessOptions`; `sources` name the option, variable or profile of each.
    """

    values: Mapping[str, Any] = field(repr=False)
    sources: Mapping[str, str]

    @classmethod
    def of(cls, context: typer.Context, options: AccessOptions) -> Access:
        """Returns the settings of command line and environment. Missing settings come from the profile.

        Raises:
            ArgumentError: The profile does not exist, or the file of profiles is malformed.
        """
        profile = load_profile(options.profile)
        explicit = {name: getattr(options, name) for name in OPTIONS if name != "profile"}
        explicit = {name: value for name, value in explicit.items() if value is not None}
        by_profile = dict.fromkeys(profile.values, f"the profile {profile.name} of {profile.file}")
        return cls(
            {**profile.values, **explicit}, {**by_profile, **{name: _source(context, name) for name in explicit}}
        )

    def config(self) -> ClientConfig:
        """Returns the configuration of clients.

        Raises:
            ArgumentError: The name server or half of an account is missing, or TLS has no trusted authority.
        """
        if not self.values.get("name_server"):
            name = "name_server in a profile"
            raise ArgumentError(f"expected --name-server host:9876, NAMESRV_ADDR in the environment, or {name}")
        account: dict[str, Any] = {
            name: self.values.get(name) for name in ("access_key", "secret_key", "security_token")
        }
        for name, partner in (("access_key", "secret_key"), ("secret_key", "access_key")):
            if account[name] is not None and account[partner] is None:
                raise ArgumentError(
                    f"expected {_ways_to_say(partner)} for {name}, which comes from {self.sources[name]}"
                )
        return ClientConfig(name_server=self.values["name_server"], tls=self._tls(), **account)

    def next_step(self, error: RmqError) -> str | None:
        """Returns advice for an error that access control or TLS may cause. `None` for other errors."""
        text = str(error).lower()
        steps = {
            # An AclException has code 1 like any failure, so only its text tells.
            "no accesskey is configured": f"{_ways_to_say('access_key')}; and its secret",
            "no acl config for": f"the access key comes from {self.sources.get('access_key')}",
            "check signature failed": f"the secret key comes from {self.sources.get('secret_key')}",
            "unknownissuer": f"who is trusted comes from {self.sources.get('tls_trust')}: it did not sign the server",
            "certificaterequired": f"the server asks who you are: {_ways_to_say('tls_certificate')}; and its key",
            "is closed": None
            if self._wants_tls
            else f"a server that takes TLS only ends others so: {_ways_to_say('tls')}",
        }
        return next((step for words, step in steps.items() if words in text), None)

    @property
    def _wants_tls(self) -> bool:
        return self.values.get("tls") is not False and any(name.startswith("tls") for name in self.values)

    def _tls(self) -> TlsOptions | None:
        if not self._wants_tls:
            return None
        trust, verify = self.values.get("tls_trust"), self.values.get("tls_verify", True)
        if verify and trust is None:
            raise ArgumentError(f"expected {_ways_to_say('tls_trust')}, or --no-tls-verify to trust everybody")
        pair: dict[str, Any] = {name: self.values.get(f"tls_{name}") for name in ("certificate", "key")}
        if None in pair.values() and any(pair.values()):
            absent = next(name for name, value in pair.items() if value is None)
            raise ArgumentError(f"expected {_ways_to_say(f'tls_{absent}')}: certificate and key belong together")
        return TlsOptions(trust=trust, verify=verify, check_host=self.values.get("tls_check_host", True), **pair)


def reaches_cluster(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options of `AccessOptions` to a command, which gets their values as its argument `access`.

    Errors of access control and unknown names get a next step as a note, which the root of the command line prints.
    """
    # Typer needs annotations as objects, but `from __future__ import annotations` leaves strings.
    own = inspect.signature(command, eval_str=True)
    hints = get_type_hints(AccessOptions, include_extras=True)
    # Keyword-only parameters may follow others in any order, with or without defaults.
    kind = inspect.Parameter.KEYWORD_ONLY
    shared = [inspect.Parameter("context", kind, annotation=typer.Context)]
    shared += [inspect.Parameter(name, kind, default=None, annotation=hints[name]) for name in OPTIONS]
    parameters = [parameter for parameter in own.parameters.values() if parameter.name != "access"]

    @functools.wraps(command)
    def run(*, context: typer.Context, **arguments: Any) -> None:
        access = Access.of(context, AccessOptions(**{name: arguments.pop(name) for name in OPTIONS}))
        try:
            command(**arguments, access=access)
        except RmqError as error:
            if step := access.next_step(error) or suggestion(error, arguments, access.config):
                error.add_note(step)
            raise

    # `wraps` copied the signature of the command, which lacks these options.
    run.__signature__ = own.replace(parameters=[*parameters, *shared])  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in (*parameters, *shared)}
    return run


@contextmanager
def administration(access: Access) -> Iterator[Admin]:
    """Yields a running `Admin`. Raises the errors of `Access.config`."""
    with Admin(config=access.config()) as admin:
        yield admin


def say_problems(snapshot: Snapshot) -> None:
    """Reports what brokers did not tell."""
    for problem in snapshot.problems:
        say(problem)


def write_values(form: Form, columns: Sequence[str], values: Iterable[object]) -> None:
    """Writes values as rows. Each column is an attribute of the values."""
    write(form, columns, [[[getattr(value, column) for column in columns] for value in values]])


def _source(context: typer.Context, name: str) -> str:
    source = context.get_parameter_source(name)
    option = "--" + name.replace("_", "-")
    return f"RMQFAST_{name.upper()}" if source is not None and source.name == "ENVIRONMENT" else option


def _ways_to_say(name: str) -> str:
    """Returns text with the ways in which a missing setting can be given."""
    return f"--{name.replace('_', '-')}, RMQFAST_{name.upper()}, or {name} in a profile of {profile_file()}"
