"""Make the certificate authority and server certificate of a run over TLS (clause C-35)."""

from __future__ import annotations

from collections.abc import Sequence

AUTHORITY, CERTIFICATE, KEY = "tls.authority", "tls.certificate", "tls.key"


def make_certificates(addresses: Sequence[str]) -> dict[str, tuple[str, bytes]]:
    """Make an authority, a certificate for `addresses` and localhost that it signed, and its key.

    Return the spec keys of clause C-35 with the names and contents (PEM) of the files.
    """
    import trustme  # imported here because it loads a cryptographic library that few runs need

    authority = trustme.CA()
    server = authority.issue_cert(*addresses, "localhost")
    chain = b"".join(blob.bytes() for blob in server.cert_chain_pems)
    return {
        AUTHORITY: ("authority.pem", authority.cert_pem.bytes()),
        CERTIFICATE: ("certificate.pem", chain),
        KEY: ("key.pem", server.private_key_pem.bytes()),
    }
