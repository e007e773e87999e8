"""SROS 2: ROS's variables and the enclave of a node, from the credentials of the run."""

from __future__ import annotations

import os
from pathlib import Path

from wattwire_kit import Kit, MiddlewareFailed

VARIABLES = (
    "ROS_SECURITY_ENABLE",
    "ROS_SECURITY_ENCLAVE_OVERRIDE",
    "ROS_SECURITY_KEYSTORE",
    "ROS_SECURITY_STRATEGY",
)
CREDENTIALS = {
    "identity_ca.cert.pem": "tls.authority",
    "permissions_ca.cert.pem": "tls.authority",
    "cert.pem": "tls.certificate",
    "key.pem": "tls.key",
    "governance.p7s": "security.governance",
    "permissions.p7s": "security.permissions",
}
"""File name in an enclave of SROS 2 → spec key."""


def configure_security(kit: Kit) -> dict[str, str]:
    """Set ROS's variables of security; return the effective protocol and cipher if it is on.

    The enclave consists of links in the folder of the private key, which ends with the run.
    """
    for name in VARIABLES:
        os.environ.pop(name, None)
    if kit.setting("security") != "on":
        return {}
    for key in CREDENTIALS.values():
        if not kit.spec[key]:
            raise MiddlewareFailed(f"SROS 2 needs {key}; it is empty")
    keystore = Path(kit.spec["tls.key"]).absolute().parent / "keystore"
    (keystore / "enclaves").mkdir(parents=True, exist_ok=True)
    for name, key in CREDENTIALS.items():
        link = keystore / "enclaves" / name
        link.unlink(missing_ok=True)
        link.symlink_to(Path(kit.spec[key]).absolute())
    os.environ |= {
        "ROS_SECURITY_ENABLE": "true",
        "ROS_SECURITY_STRATEGY": "Enforce",
        "ROS_SECURITY_KEYSTORE": str(keystore),
    }
    return {
        "security_protocol": "SROS 2, strategy Enforce",
        "security_cipher": "not told by the library",
    }
