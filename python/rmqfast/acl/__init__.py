"""Access control: ACL 1.0, as clients of RocketMQ sign and as the broker of 4.9.4 checks; name servers check so, too.

`AccessValidator.check` stands before everything that answers requests; `AclProcessor` shows and changes its rules.
"""

from rmqfast.acl.access_validator import AccessValidator, Mode, validator_of
from rmqfast.acl.account import AccountConfig
from rmqfast.acl.acl_files import AclFiles
from rmqfast.acl.acl_processor import AclProcessor
from rmqfast.acl.administrator import Administrator
from rmqfast.acl.rights import RIGHTS, Need, Right
from rmqfast.acl.secure_directory import SecureDirectory

__all__ = [
    "RIGHTS",
    "AccessValidator",
    "AccountConfig",
    "AclFiles",
    "AclProcessor",
    "Administrator",
    "Mode",
    "Need",
    "Right",
    "SecureDirectory",
    "validator_of",
]
