"""Certificates for the TLS tests, made with the openssl command.

Each name stands for a pair <name>.pem and <name>.key:

    ca        the authority that signed all but `self`
    good      localhost, 127.0.0.1 and ::1
    name      localhost, no address
    other     other.example
    expired   as good, but over since yesterday
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


class Certificates:
    """A folder with them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._signed_by_itself("ca", "CA:TRUE", LOCAL)
        self._signed_by_itself("self", "CA:FALSE", LOCAL)
        for name, hosts in NAMES.items():
            self._signed(name, hosts, days=-1 if name == "expired" else 2)
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
            *("-addext", f"subjectAltName={hosts}"),
        )

    def _signed(self, name: str, hosts: str, days: int) -> None:
        self.file(f"{name}.ext").write_text(f"subjectAltName={hosts}\n")
        self._openssl(
            *("req", *_KEY, "-keyout", f"{name}.key", "-out", f"{name}.csr"),
            *("-subj", f"/CN=cwist_jq test {name}"),
        )
        self._openssl(
            *("x509", "-req", "-in", f"{name}.csr", "-out", f"{name}.pem", "-days", str(days)),
            *("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", f"{name}.ext"),
        )
