"""Write the certificate authority and server certificate of a run over TLS (clause C-35)."""

from __future__ import annotations

from pathlib import Path

from wattwire.run.network import HOST_ADDRESS

HOSTS = (HOST_ADDRESS, "localhost")


def make_certificates(folder: Path) -> dict[str, str]:
    """Write PEM files of an authority, of a certificate for HOSTS that it signed, and of its key.

    Return the spec keys of clause C-35 with the paths of the files.
    """
    import trustme  # imported here because it loads a cryptographic library that few runs need

    folder.mkdir(parents=True, exist_ok=True)
    authority = trustme.CA()
    server = authority.issue_cert(*HOSTS)
    paths = {
        "tls.authority": folder / "authority.pem",
        "tls.certificate": folder / "certificate.pem",
        "tls.key": folder / "key.pem",
    }
    paths["tls.key"].touch(mode=0o600)
    authority.cert_pem.write_to_path(str(paths["tls.authority"]))
    for index, blob in enumerate(server.cert_chain_pems):
        blob.write_to_path(str(paths["tls.certificate"]), append=index > 0)
    server.private_key_pem.write_to_path(str(paths["tls.key"]))
    return {key: str(path.resolve()) for key, path in paths.items()}
