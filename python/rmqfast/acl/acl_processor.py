"""Answers the requests with codes 50 to 54, which show and change accounts and white lists.

Source: `AdminBrokerProcessor`.
"""

from __future__ import annotations

from collections.abc import Callable

from rmqfast.acl.access_validator import AccessValidator
from rmqfast.acl.account import AccountConfig
from rmqfast.acl.rules import Change, RemoveAccount, SetAccount, SetWhiteAddresses
from rmqfast.errors import ArgumentError, ResponseError
from rmqfast.remoting import Header, Processor, Request, RequestCode, Response, ResponseCode, fastjson
from rmqfast.remoting.fastjson import java_text
from rmqfast.store.config import DataVersion


class AclProcessor:
    def __init__(self, validator: AccessValidator, *, cluster_name: str, broker_name: str, broker_address: str) -> None:
        self._validator = validator
        self._broker = {"brokerName": broker_name, "brokerAddr": broker_address, "clusterName": cluster_name}

    def processors(self) -> dict[int, Processor]:
        return {
            RequestCode.UPDATE_AND_CREATE_ACL_CONFIG: self.update_account,
            RequestCode.DELETE_ACL_CONFIG: self.delete_account,
            RequestCode.GET_BROKER_CLUSTER_ACL_INFO: self.versions,
            RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG: self.update_white_addresses,
            RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG: self.config,
        }

    def update_account(self, request: Request) -> Response:
        fields = request.ext_fields
        config = AccountConfig(
            access_key=fields.get("accessKey"),
            secret_key=fields.get("secretKey"),
            white_remote_address=fields.get("whiteRemoteAddress"),
            admin=Header(fields).flag("admin"),
            default_topic_perm=fields.get("defaultTopicPerm"),
            default_group_perm=fields.get("defaultGroupPerm"),
            topic_perms=_java_split(fields.get("topicPerms")),
            group_perms=_java_split(fields.get("groupPerms")),
        )
        failed = f"The accesskey[{java_text(config.access_key)}] corresponding to accessConfig has been updated failed."
        return self._change(lambda: SetAccount(config), ResponseCode.UPDATE_AND_CREATE_ACL_CONFIG_FAILED, failed)

    def delete_account(self, request: Request) -> Response:
        access_key = request.ext_fields.get("accessKey")
        failed = f"The accesskey[{java_text(access_key)}] corresponding to accessConfig has been deleted failed."
        return self._change(lambda: RemoveAccount(access_key), ResponseCode.DELETE_ACL_CONFIG_FAILED, failed)

    def update_white_addresses(self, request: Request) -> Response:
        text = request.ext_fields.get("globalWhiteAddrs")
        change = SetWhiteAddresses(_java_split(text), request.ext_fields.get("aclFileFullPath"))
        failed = f"The globalWhiteAddresses[{java_text(text)}] has been updated failed."
        return self._change(lambda: change, ResponseCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG_FAILED, failed)

    def versions(self, _request: Request) -> Response:
        validator = self._validator
        versions = validator.rules.versions
        # If the file is missing, the start time counts as its version.
        version = versions.get(validator.default_path, DataVersion(timestamp=validator.started))
        by_path = {str(path): entry.to_json() for path, entry in versions.items()}
        texts = {"version": version.to_json(), "allAclFileVersion": by_path}
        return Response(
            ext_fields=self._broker | {name: fastjson.encode(text).decode() for name, text in texts.items()}
        )

    def config(self, _request: Request) -> Response:
        rules = self._validator.rules
        body = {
            "globalWhiteAddrs": list(rules.white_addresses),
            "plainAccessConfigs": [config.to_members() for config in rules.configs],
        }
        return Response(body=fastjson.encode(body))

    def _change(self, change: Callable[[], Change], failed_code: ResponseCode, failed: str) -> Response:
        try:
            is_changed = self._validator.change(change())
        except ArgumentError as error:
            raise ResponseError(failed_code, str(error)) from error
        if not is_changed:
            raise ResponseError(failed_code, failed)
        return Response()


def _java_split(text: str | None) -> tuple[str, ...] | None:
    """Splits at commas like Java's `String.split`, which drops empty parts at the end. None stays None."""
    if not text:
        return None if text is None else ("",)
    parts = text.split(",")
    while parts and not parts[-1]:
        parts.pop()
    return tuple(parts)
