"""Stores strings by namespace and key in a file, mostly brokers of ordered topics. Answers requests for them.

Source: RocketMQ's `KVConfigManager`, `KVTable`, `KVConfigSerializeWrapper`, `DefaultRequestProcessor`.
"""

from __future__ import annotations

from pathlib import Path

from rmqfast.errors import CorruptError, RemotingProtocolError, ResponseError
from rmqfast.logs import QuietLock, logger_of
from rmqfast.nameserver.names import MAX_KV_CHARACTERS, MAX_NAME
from rmqfast.remoting import Header, Processor, Request, RequestCode, Response, ResponseCode, fastjson
from rmqfast.remoting.text_file import read_text, write_text

_LOG = logger_of("rmqfast.nameserver")

_ENTRY = 64  # characters added per entry, for its overhead

#: Namespace that holds the brokers of ordered topics.
NAMESPACE_ORDER_TOPIC_CONFIG = "ORDER_TOPIC_CONFIG"


class KVConfigManager:
    """Strings by namespace and key. Each change is written to the file at once. Thread-safe.

    Example:
        >>> configs = KVConfigManager(getfixture("tmp_path") / "kvConfig.json")
        >>> configs.put("ORDER_TOPIC_CONFIG", "orders", "broker-a:4")
        >>> KVConfigManager.load(configs.path).get("ORDER_TOPIC_CONFIG", "orders")
        'broker-a:4'
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = QuietLock()
        self._table: dict[str, dict[str, str]] = {}
        self._characters = 0

    @classmethod
    def load(cls, path: Path) -> KVConfigManager:
        """Reads the file or its backup. Empty if neither exists.

        RocketMQ starts empty if the file cannot be read, and then overwrites it. This raises `CorruptError` instead.
        """
        manager = cls(path)
        text = read_text(path)
        if text is not None:
            try:
                manager._take(fastjson.decode(text.encode()))
            except RemotingProtocolError as error:
                raise CorruptError(f"{path}: {error}") from error
        return manager

    def put(self, namespace: str, key: str, value: str | None) -> None:
        """Sets a value. If `value` is `None`, only creates the namespace, unless it exists."""
        for text in (namespace, key):
            if not text.isprintable() or len(text) > MAX_NAME:
                raise ResponseError(ResponseCode.SYSTEM_ERROR, f"a namespace or key that is no name: {text[:40]!r}")
        with self._lock:
            is_new = namespace not in self._table
            old = self._table.get(namespace, {}).get(key)
            grown = (_size(namespace, "") if is_new else 0) + _size(key, value) - _size(key, old)
            if self._characters + grown > MAX_KV_CHARACTERS:
                raise ResponseError(ResponseCode.SYSTEM_ERROR, f"no room for more than {MAX_KV_CHARACTERS} characters")
            self._characters += grown
            keys = self._table.setdefault(namespace, {})
            keys.pop(key, None)
            if value is not None:
                keys[key] = value
            _LOG.info("put %s %s", namespace, key)
            self._persist()

    def get(self, namespace: str | None, key: str | None) -> str | None:
        with self._lock:
            return self._table.get(namespace or "", {}).get(key or "")

    def delete(self, namespace: str | None, key: str | None) -> None:
        with self._lock:
            old = self._table.get(namespace or "", {}).pop(key or "", None)
            if old is not None:
                self._characters -= _size(key or "", old)
                self._persist()

    def table(self, namespace: str | None) -> bytes | None:
        """Returns the body of an answer with all entries of a namespace. `None` if the namespace never existed."""
        with self._lock:
            keys = self._table.get(namespace or "")
            return None if keys is None else fastjson.encode({"table": keys})

    def _persist(self) -> None:
        """Writes the file. Holds the lock meanwhile, so that the file contains the last change."""
        write_text(self.path, fastjson.encode({"configTable": self._table}).decode())

    def _take(self, members: object) -> None:
        table = members.get("configTable") if isinstance(members, dict) else None
        if not isinstance(table, dict) or not all(isinstance(keys, dict) for keys in table.values()):
            raise RemotingProtocolError("expected an object configTable with an object for each namespace")
        for namespace, keys in table.items():
            texts = {str(key): str(value) for key, value in keys.items() if value is not None}
            self._table[str(namespace)] = texts
            self._characters += _size(str(namespace), "") + sum(_size(key, value) for key, value in texts.items())


def _size(key: str, value: str | None) -> int:
    return 0 if value is None else len(key) + len(value) + _ENTRY


class KVConfigProcessor:
    def __init__(self, kv_configs: KVConfigManager) -> None:
        self._kv_configs = kv_configs

    def processors(self) -> dict[int, Processor]:
        return {
            RequestCode.PUT_KV_CONFIG: self.put,
            RequestCode.GET_KV_CONFIG: self.get,
            RequestCode.DELETE_KV_CONFIG: self.delete,
            RequestCode.GET_KVLIST_BY_NAMESPACE: self.table,
        }

    def put(self, request: Request) -> Response:
        header = Header(request.ext_fields)
        namespace, key = header.optional_text("namespace"), header.optional_text("key")
        if namespace is None or key is None:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, "namespace or key is null")
        self._kv_configs.put(namespace, key, header.optional_text("value"))
        return Response()

    def get(self, request: Request) -> Response:
        header = Header(request.ext_fields)
        namespace, key = header.optional_text("namespace"), header.optional_text("key")
        value = self._kv_configs.get(namespace, key)
        if value is None:
            remark = f"No config item, Namespace: {fastjson.java_text(namespace)} Key: {fastjson.java_text(key)}"
            return Response(ResponseCode.QUERY_NOT_FOUND, remark, {})
        return Response(ext_fields={"value": value})

    def delete(self, request: Request) -> Response:
        header = Header(request.ext_fields)
        self._kv_configs.delete(header.optional_text("namespace"), header.optional_text("key"))
        return Response()

    def table(self, request: Request) -> Response:
        namespace = Header(request.ext_fields).optional_text("namespace")
        body = self._kv_configs.table(namespace)
        if body is None:
            raise ResponseError(
                ResponseCode.QUERY_NOT_FOUND, f"No config item, Namespace: {fastjson.java_text(namespace)}"
            )
        return Response(body=body)
