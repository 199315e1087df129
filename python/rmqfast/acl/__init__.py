"""Access control for brokers and name servers: ACL 1.0, with the checks of RocketMQ 4.9.4.

`AccessValidator.check` runs before every processor; `AclProcessor` shows and changes its rules.
"""

from rmqfast.acl.access_validator import AccessValidator, Administrator, Mode, validator_of
from rmqfast.acl.account import AccountConfig
from rmqfast.acl.acl_files import AclFiles
from rmqfast.acl.acl_processor import AclProcessor
from rmqfast.acl.rights import RIGHTS, Requirement, Right
from rmqfast.acl.secure_directory import SecureDirectory

__all__ = [
    "RIGHTS",
    "AccessValidator",
    "AccountConfig",
    "AclFiles",
    "AclProcessor",
    "Administrator",
    "Mode",
    "Requirement",
    "Right",
    "SecureDirectory",
    "validator_of",
]
