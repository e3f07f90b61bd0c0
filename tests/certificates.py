"""Certificates for the TLS tests, made with the openssl command.

Each name stands for a pair <name>.pem and <name>.key:

    ca        the authority that signed all but `self`
    good      localhost, 127.0.0.1 and ::1
    name      localhost, no address
    common    localhost, as its common name only
    other     other.example
    expired   as good, but over since 2020
    self      as good, signed by itself
    client    what a client shows

Besides: both.pem (client.pem and its key in one file) and secret.key (client.key with a password).
"""

from __future__ import annotations

import subprocess
from pathlib import Path

LOCAL = "DNS:localhost,IP:127.0.0.1,IP:::1"
NAMES = {
    "good": LOCAL,
    "name": "DNS:localhost",
    "other": "DNS:other.example",
    "expired": LOCAL,
    "client": "DNS:client",
}
_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]

_AUTHORITY = """
[ca]
default_ca = authority
[authority]
certificate = ca.pem
private_key = ca.key
database = index.txt
new_certs_dir = .
rand_serial = yes
default_md = sha256
policy = policy
[policy]
commonName = supplied
"""

#: What Python from 3.13 on wants to see.
_STRICT = """
basicConstraints = critical,CA:FALSE
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
"""


class Certificates:
    """A folder with them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.file("ca.conf").write_text(_AUTHORITY)
        self.file("index.txt").touch()
        self._signed_by_itself("ca", "CA:TRUE", LOCAL)
        self._signed_by_itself("self", "CA:FALSE", LOCAL)
        for name, hosts in NAMES.items():
            self._signed(name, f"subjectAltName={hosts}\n", f"cwist_jq test {name}")
        self._signed("common", "", "localhost")
        both = self.file("client.pem").read_text() + self.file("client.key").read_text()
        self.file("both.pem").write_text(both)
        self._openssl(
            "pkey", "-in", "client.key", "-aes128", "-passout", "pass:x", "-out", "secret.key"
        )

    def file(self, name: str) -> Path:
        """The path of a file."""
        return self.folder / name

    @property
    def query(self) -> str:
        """The end of an URL that trusts the authority."""
        return f"?tls_ca={self.file('ca.pem')}"

    def _openssl(self, *words: str) -> None:
        done = subprocess.run(
            ["openssl", *words], cwd=self.folder, check=False, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr

    def _signed_by_itself(self, name: str, basic: str, hosts: str) -> None:
        self._openssl(
            *("req", "-x509", *_KEY, "-keyout", f"{name}.key", "-out", f"{name}.pem"),
            *("-subj", f"/CN=cwist_jq test {name}", "-days", "2"),
            *("-addext", f"basicConstraints=critical,{basic}"),
            *("-addext", "keyUsage=critical,keyCertSign,cRLSign,digitalSignature"),
            *("-addext", f"subjectAltName={hosts}"),
        )

    def _signed(self, name: str, hosts: str, common_name: str) -> None:
        self.file(f"{name}.ext").write_text(f"{hosts}{_STRICT}")
        self._openssl(
            *("req", *_KEY, "-keyout", f"{name}.key", "-out", f"{name}.csr"),
            *("-subj", f"/CN={common_name}"),
        )
        # Only the command `ca` takes dates in every version of OpenSSL.
        dates = ("-startdate", "20200101000000Z", "-enddate", "20200102000000Z")
        self._openssl(
            *("ca", "-batch", "-notext", "-config", "ca.conf", "-extfile", f"{name}.ext"),
            *("-in", f"{name}.csr", "-out", f"{name}.pem"),
            *(dates if name == "expired" else ("-days", "2")),
        )
