"""Profiles: clusters by name, in `~/.config/rmqfast.toml`.

```toml
[profiles.default]
name_server = "10.0.0.1:9876"
access_key = "reader"
secret_key = "..."
tls_trust = "ca.pem"
```
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rmqfast.cli.output import say
from rmqfast.errors import ArgumentError
from rmqfast.paths import local_path
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


def load_profile(name: str | None = None) -> Profile:
    """Returns the profile with a name. Without a name, returns `default`, which may be missing.

    Raises:
        ArgumentError: The profile does not exist, or the file is invalid.
    """
    file = profile_file()
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
