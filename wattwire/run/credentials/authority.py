"""The authority of a run: it issues identities and signs documents.

The cryptographic libraries are imported when they are needed, because few runs need them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

LOCALHOST = "localhost"


@dataclass(frozen=True)
class Identity:
    """A certificate with its chain, its private key (both PEM), and its subject (RFC 4514)."""

    certificate: bytes
    key: bytes
    subject: str


class Authority:
    """An authority that exists for one run. Its private key never leaves the controller."""

    def __init__(self) -> None:
        import trustme  # noqa: PLC0415 - slow

        self._authority = trustme.CA()

    @property
    def certificate(self) -> bytes:
        """Return its certificate (PEM)."""
        return self._authority.cert_pem.bytes()

    def identity(self, name: str, addresses: Sequence[str], **validity: Any) -> Identity:
        """Issue an identity called `name` for these addresses and localhost.

        `validity` has the times `not_before` and `not_after`; without them it never expires in
        practice, because hosts of a rig may have clocks that differ by years.
        """
        from cryptography import x509  # noqa: PLC0415 - slow

        names = list(dict.fromkeys([*addresses, LOCALHOST]))
        issued = self._authority.issue_cert(*names, common_name=name, **validity)
        chain = b"".join(blob.bytes() for blob in issued.cert_chain_pems)
        subject = x509.load_pem_x509_certificate(chain).subject.rfc4514_string()
        return Identity(chain, issued.private_key_pem.bytes(), subject)

    def signed(self, text: str) -> bytes:
        """Return a text as an S/MIME message (multipart/signed), signed by the authority itself."""
        from cryptography import x509  # noqa: PLC0415 - slow
        from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
        from cryptography.hazmat.primitives.serialization import pkcs7  # noqa: PLC0415

        key: Any = serialization.load_pem_private_key(
            self._authority.private_key_pem.bytes(), password=None
        )
        builder = pkcs7.PKCS7SignatureBuilder().set_data(text.encode())
        certificate = x509.load_pem_x509_certificate(self.certificate)
        signing = builder.add_signer(certificate, key, hashes.SHA256())
        options = [pkcs7.PKCS7Options.Text, pkcs7.PKCS7Options.DetachedSignature]
        return signing.sign(serialization.Encoding.SMIME, options)
