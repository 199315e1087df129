"""A directory at a URL of an object store, through pyarrow's file systems.

Source: `S3FileSystem` of Arrow: a file exists when its upload has ended, all of it or nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from typing import Any
from urllib.parse import unquote, urlsplit

from rmqfast.errors import ArgumentError, StoreNotFoundError

#: Classes of `pyarrow.fs`, and the schemes of their URLs `scheme://bucket/path`.
_CLASSES = {"s3": "S3FileSystem", "gs": "GcsFileSystem", "gcs": "GcsFileSystem"}
#: Schemes that pyarrow knows, but at which it cannot copy files.
_WITHOUT_COPIES = frozenset({"hdfs", "viewfs"})
#: Arguments of these classes that are no texts. Others are texts, also a key that has only digits.
_FLAGS = frozenset(
    {
        "anonymous",
        "background_writes",
        "allow_bucket_creation",
        "allow_bucket_deletion",
        "allow_delayed_open",
        "check_directory_existence_before_creation",
        "force_virtual_addressing",
    }
)
_NUMBERS: dict[str, Callable[[str], object]] = {
    "request_timeout": float,
    "connect_timeout": float,
    "load_frequency": int,
    "retry_time_limit": lambda seconds: timedelta(seconds=float(seconds)),
}
#: Variables of the environment with the URL of a store that is not Amazon's, and with a region.
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
#: Requests that are sent until one of them is answered, as a store that is busy answers 503.
_MOST_ATTEMPTS = 5
#: Copies that a store makes at the same time.
_MOST_COPIES = 16


def is_url(out: str | os.PathLike[str]) -> bool:
    """Whether a path is a URL of another system."""
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", os.fspath(out))
    return scheme is not None and scheme[1].lower() != "file"


def open_remote_directory(url: str, options: Mapping[str, str]) -> RemoteDirectory:
    """Returns the directory at a URL.

    Args:
        url: The URL, as `s3://bucket/path`.
        options: Arguments of the class of `pyarrow.fs` that the URL's scheme names.

    Raises:
        ArgumentError: The scheme is unknown, the URL has a password, or the options are not those of the class.
    """
    parts = urlsplit(url)
    if parts.password is not None or (
        parts.scheme in _CLASSES and ("@" in parts.netloc or parts.query or parts.fragment)
    ):
        # not shown: it may have a key
        raise ArgumentError(f"out: expected {parts.scheme}://BUCKET/PATH, with all else in options, got another URL")
    if parts.scheme not in _CLASSES and options:
        raise ArgumentError(f"options: expected none for {parts.scheme}://, got {', '.join(options)}")
    if parts.scheme not in _CLASSES:
        return RemoteDirectory(url, *_other_file_system(url, parts.scheme))
    if not parts.netloc:
        raise ArgumentError(f"out: expected {parts.scheme}://BUCKET/PATH, got {url}")
    path = unquote(f"{parts.netloc}{parts.path}").rstrip("/")
    return RemoteDirectory(url.rstrip("/"), _file_system(_CLASSES[parts.scheme], parts.netloc, options), path)


class RemoteDirectory:
    """A directory of an object store. `path` is its path in the file system, which begins with the bucket."""

    def __init__(self, url: str, file_system: Any, path: str) -> None:
        self.name = url
        self._files, self._path = file_system, path

    def names(self) -> set[str]:
        from pyarrow import fs

        found = {info.base_name for info in self._list("", is_recursive=False)}
        bucket = self._path.partition("/")[0]
        # an absent bucket looks empty
        if not found and bucket and self._files.get_file_info(bucket).type == fs.FileType.NotFound:
            error = StoreNotFoundError(f"{self.name}: the bucket does not exist")
            error.add_note("create the bucket, or check the URL and the endpoint")
            raise error
        return found

    def files(self, path: str) -> set[str]:
        root = self._at(path)
        return {
            info.path.removeprefix(root).lstrip("/") for info in self._list(path, is_recursive=True) if info.is_file
        }

    def read(self, path: str) -> bytes | None:
        try:
            with self._files.open_input_stream(self._at(path)) as file:
                return bytes(file.read())
        except FileNotFoundError:
            return None

    def create(self, path: str) -> Any:
        return self._files.open_output_stream(self._at(path))

    def flush(self, paths: Iterable[str]) -> None:
        # an upload that has ended is stored
        del paths

    def replace(self, path: str, data: bytes) -> None:
        # an interrupted upload ends as well, with what it has until then: a copy is all or nothing
        partial = f"{path}.tmp"
        with self.create(partial) as file:
            file.write(data)
        self._files.copy_file(self._at(partial), self._at(path))
        self.remove_file(partial)

    def move_out(self, source: str, paths: Sequence[str]) -> None:
        def copy(path: str) -> None:
            self._files.copy_file(self._at(f"{source}/{path}"), self._at(path))

        with ThreadPoolExecutor(_MOST_COPIES, thread_name_prefix="rmqfast-copies") as pool:
            for _ in pool.map(copy, paths):
                pass

    def remove_file(self, path: str) -> None:
        with suppress(FileNotFoundError):
            self._files.delete_file(self._at(path))

    def remove_directory(self, path: str) -> None:
        try:
            self._files.delete_dir(self._at(path))
        except FileNotFoundError:
            pass
        except OSError:
            # some stores refuse a directory before its files, in one request; without files it is nothing
            if self.files(path):
                raise

    def _at(self, path: str) -> str:
        return f"{self._path}/{path}".rstrip("/")

    def _list(self, path: str, *, is_recursive: bool) -> list[Any]:
        from pyarrow import fs

        selector = fs.FileSelector(self._at(path), recursive=is_recursive, allow_not_found=True)
        return list(self._files.get_file_info(selector))


def _other_file_system(url: str, scheme: str) -> tuple[Any, str]:
    from pyarrow import fs

    reason: object = "pyarrow cannot copy files there"
    if scheme not in _WITHOUT_COPIES:
        try:
            file_system, path = fs.FileSystem.from_uri(url)
        except ValueError as error:
            reason = error
        else:
            return file_system, path
    refused = ArgumentError(f"out: expected a path, s3:// or gs://, got {url}: {reason}")
    refused.add_note("rmqfast.spark.ingest writes Parquet to URLs that Spark knows")
    raise refused


def _file_system(name: str, bucket: str, options: Mapping[str, str]) -> Any:
    from pyarrow import fs

    arguments: dict[str, Any] = {option: _value(option, text) for option, text in options.items()}
    if name == "S3FileSystem":
        endpoint = next(filter(None, map(os.environ.get, _ENDPOINTS)), None)
        if endpoint is not None:
            # as other libraries do
            arguments.setdefault("endpoint_override", endpoint)
        if not {"region", "endpoint_override"} & set(arguments) and not any(map(os.environ.get, _REGIONS)):
            arguments["region"] = fs.resolve_s3_region(bucket)
        # one request for a small file, not three
        arguments = {"allow_delayed_open": True} | arguments
        arguments.setdefault("retry_strategy", fs.AwsStandardS3RetryStrategy(max_attempts=_MOST_ATTEMPTS))
    try:
        return getattr(fs, name)(**arguments)
    except (AttributeError, TypeError, ValueError) as error:
        raise ArgumentError(f"options: expected arguments of pyarrow.fs.{name}: {error}") from None


def _value(option: str, text: str) -> object:
    """Returns the value of an option."""
    if option in _FLAGS:
        if text not in {"true", "false"}:
            raise ArgumentError(f"options: expected true or false as {option}, got {text!r}")
        return text == "true"
    if option in _NUMBERS:
        try:
            return _NUMBERS[option](text)
        except ValueError:
            raise ArgumentError(f"options: expected a number as {option}, got {text!r}") from None
    return text
