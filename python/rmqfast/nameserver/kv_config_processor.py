"""Answers for texts by namespace and key.

Source: `DefaultRequestProcessor` of the name server.
"""

from __future__ import annotations

from rmqfast.errors import ResponseError
from rmqfast.nameserver.kv_config import KVConfigManager
from rmqfast.remoting import Header, Processor, Request, RequestCode, Response, ResponseCode


class KVConfigProcessor:
    """Codes 100, 101, 102 and 219."""

    def __init__(self, kv_configs: KVConfigManager) -> None:
        self._kv_configs = kv_configs

    def processors(self) -> dict[int, Processor]:
        """Who answers which code."""
        return {
            RequestCode.PUT_KV_CONFIG: self.put,
            RequestCode.GET_KV_CONFIG: self.get,
            RequestCode.DELETE_KV_CONFIG: self.delete,
            RequestCode.GET_KVLIST_BY_NAMESPACE: self.table,
        }

    def put(self, request: Request) -> Response:
        """Sets a text.

        Source: `DefaultRequestProcessor.putKVConfig`.
        """
        header = Header(request.ext_fields)
        namespace, key = header.optional_text("namespace"), header.optional_text("key")
        if namespace is None or key is None:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, "namespace or key is null")
        self._kv_configs.put(namespace, key, header.optional_text("value"))
        return Response()

    def get(self, request: Request) -> Response:
        """Tells a text.

        Source: `DefaultRequestProcessor.getKVConfig`.
        """
        header = Header(request.ext_fields)
        namespace, key = header.optional_text("namespace"), header.optional_text("key")
        value = self._kv_configs.get(namespace, key)
        if value is None:
            remark = f"No config item, Namespace: {_java_text(namespace)} Key: {_java_text(key)}"
            return Response(ResponseCode.QUERY_NOT_FOUND, remark, {})
        return Response(ext_fields={"value": value})

    def delete(self, request: Request) -> Response:
        """Forgets a text.

        Source: `DefaultRequestProcessor.deleteKVConfig`.
        """
        header = Header(request.ext_fields)
        self._kv_configs.delete(header.optional_text("namespace"), header.optional_text("key"))
        return Response()

    def table(self, request: Request) -> Response:
        """Tells all texts of a namespace.

        Source: `DefaultRequestProcessor.getKVListByNamespace`.
        """
        namespace = Header(request.ext_fields).optional_text("namespace")
        body = self._kv_configs.table(namespace)
        if body is None:
            raise ResponseError(ResponseCode.QUERY_NOT_FOUND, f"No config item, Namespace: {_java_text(namespace)}")
        return Response(body=body)


def _java_text(text: str | None) -> str:
    """As Java joins it to a text."""
    return "null" if text is None else text
