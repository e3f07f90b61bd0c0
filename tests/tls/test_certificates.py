"""Whose certificate is accepted, and what is said of one that is not (Y01, Y02)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cwist_jq
from tests.certificates import Certificates
from tests.fault.support import must_claim, took
from tests.tls.impostor import Impostor

_File = Callable[[str], Path]

PASSWORD = "never-told"


def _refusal(url: str, kind: type[cwist_jq.Error] = cwist_jq.Denied) -> str:
    """Connects, which must fail at once; what is said, without the password."""
    with took(0.0, 1.5), pytest.raises(kind) as caught:
        cwist_jq.connect(url)
    text = str(caught.value)
    assert PASSWORD not in text
    return text


def _works(url: str) -> None:
    """A job goes in and comes out."""
    with cwist_jq.connect(url) as conn, conn.queue("works") as queue:
        job_id = queue.enqueue(b"x")
        job = must_claim(queue)
        assert job.id == job_id
        job.ack()


def _url(server: Any, scheme: str, query: str = "", host: str = "") -> str:
    return f"{scheme}://u:{PASSWORD}@{host or server.host}:{server.tls_port}{query}"


REASONS = {
    "other": "mismatch",
    "expired": "certificate has expired",
    "self": "self-signed certificate",
}


@pytest.mark.parametrize("own", REASONS)
def test_a_wrong_certificate_is_refused(
    impostor: Callable[..., Impostor], scheme: str, certificates: Certificates, own: str
) -> None:
    """Y01: with the reason, and before a byte of the credentials has left."""
    fake = impostor(own)
    text = _refusal(_url(fake, scheme, certificates.query))
    assert "certificate verify failed: " in text
    assert REASONS[own] in text.replace("self signed", "self-signed")
    assert fake.handshakes >= 1
    assert fake.received == b""


def test_an_unknown_authority_is_refused(impostor: Callable[..., Impostor], scheme: str) -> None:
    """Y01: without tls_ca the system's authorities count, and no other."""
    fake = impostor("good")
    assert "certificate verify failed: " in _refusal(_url(fake, scheme))
    assert fake.received == b""


def test_the_impostor_would_hear_the_password(
    impostor: Callable[..., Impostor], scheme: str, certificates: Certificates
) -> None:
    """What the tests above rely on: it does hear what is sent to it."""
    fake = impostor("good")
    with pytest.raises(cwist_jq.Error):
        cwist_jq.connect(_url(fake, scheme, certificates.query), operation_timeout=2.0)
    assert PASSWORD.encode() in fake.received


def test_the_name_must_be_that_of_the_url(
    impostor: Callable[..., Impostor], scheme: str, certificates: Certificates
) -> None:
    """A certificate for localhost is none for 127.0.0.1, though both lead to the server."""
    fake = impostor("name")
    assert "mismatch" in _refusal(_url(fake, scheme, certificates.query)).lower()
    assert fake.received == b""
    with pytest.raises(cwist_jq.Error):
        cwist_jq.connect(_url(fake, scheme, certificates.query, "localhost"), operation_timeout=2.0)
    assert PASSWORD.encode() in fake.received


@pytest.mark.engine("redis")
def test_a_common_name_is_no_name(
    impostor: Callable[..., Impostor], scheme: str, certificates: Certificates
) -> None:
    """What an authority may sign does not bind it."""
    fake = impostor("common")
    assert "mismatch" in _refusal(_url(fake, scheme, certificates.query, "localhost"))
    assert fake.received == b""


@pytest.mark.engine("redis")
def test_the_server_is_told_the_name(
    impostor: Callable[..., Impostor], scheme: str, certificates: Certificates
) -> None:
    """One address may serve many names; an address is no name."""
    fake = impostor("good")
    for host in ("localhost", "127.0.0.1"):
        with pytest.raises(cwist_jq.Error):
            cwist_jq.connect(_url(fake, scheme, certificates.query, host), operation_timeout=0.3)
    assert "localhost" in fake.names
    assert "127.0.0.1" not in fake.names


def test_an_address_in_the_certificate(url: str) -> None:
    assert "127.0.0.1" in url
    _works(url)


def test_the_authority_from_the_environment(
    server: Any, scheme: str, file: _File, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SSL_CERT_FILE stands for the system's authorities, as in other programs."""
    monkeypatch.setenv("SSL_CERT_FILE", str(file("ca.pem")))
    assert os.environ["SSL_CERT_FILE"]
    _works(f"{scheme}://{server.host}:{server.tls_port}")


#: OpenSSL 3 then has nothing to encrypt with.
_NO_CIPHERS = "openssl_conf=a\n[a]\nproviders=b\n[b]\nbase=c\n[c]\nactivate=1\n"

_TRY = """
import sys
import cwist_jq
try:
    cwist_jq.connect(sys.argv[1])
except cwist_jq.Unsupported as reason:
    print(reason)
"""


def test_an_openssl_that_can_do_nothing(scheme: str, tmp_path: Path) -> None:
    """That is no lack of memory: OpenSSL's own reason, and where to look."""
    config = tmp_path / "openssl.cnf"
    config.write_text(_NO_CIPHERS)
    done = subprocess.run(
        [sys.executable, "-c", _TRY, f"{scheme}://127.0.0.1:1"],
        env={**os.environ, "OPENSSL_CONF": str(config)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert "OpenSSL cannot do TLS here: " in done.stdout
    assert "openssl.cnf" in done.stdout


def test_no_verification(make_tls_server: Callable[..., Any], scheme: str) -> None:
    """Y02."""
    server = make_tls_server("self")
    _works(f"{scheme}://{server.host}:{server.tls_port}?tls_verify=no")


@pytest.mark.parametrize("files", [("client.pem", "client.key"), ("both.pem", None)])
def test_a_client_certificate(
    make_tls_server: Callable[..., Any], file: _File, files: tuple[str, str | None]
) -> None:
    """Y02: from two files or from one."""
    server = make_tls_server(clients=True)
    certificate, key = files
    query = f"&tls_cert={file(certificate)}" + (f"&tls_key={file(key)}" if key else "")
    _works(server.tls_url + query)


@pytest.mark.engine("redis")
@pytest.mark.parametrize("shown", ["none", "self"])
def test_a_client_certificate_that_redis_refuses(
    make_tls_server: Callable[..., Any], file: _File, shown: str
) -> None:
    server = make_tls_server(clients=True)
    query = "" if shown == "none" else f"&tls_cert={file('self.pem')}&tls_key={file('self.key')}"
    text = _refusal(server.tls_url + query)
    assert "the server does not accept our certificate: " in text


@pytest.mark.engine("redis")
def test_a_refusal_that_comes_while_we_send(make_tls_server: Callable[..., Any]) -> None:
    """Sending fails then; what the server said before it closed is read all the same."""
    server = make_tls_server(clients=True)
    words = "x" * 32 * 1024 * 1024
    text = _refusal(server.tls_url.replace("://", f"://:{words}@"))
    assert "the server does not accept our certificate: " in text


@pytest.mark.engine("nats")
def test_a_client_certificate_that_nats_misses(make_tls_server: Callable[..., Any]) -> None:
    """libnats hides what the server says, and a server that is going down does the same."""
    server = make_tls_server(clients=True)
    with pytest.raises(cwist_jq.ConnectionFailed, match="wants a certificate of ours"):
        cwist_jq.connect(server.tls_url, operation_timeout=3.0)


WRONG_FILES = {
    "missing authority": ("tls_ca=/nowhere/ca.pem", "/nowhere/ca.pem: No such file"),
    "authority without certificate": ("tls_ca={client.key}", "{client.key}: no certificate"),
    "missing certificate": ("tls_cert=/nowhere/c.pem", "/nowhere/c.pem: No such file"),
    "missing key": ("tls_cert={client.pem}&tls_key=/nowhere/k", "/nowhere/k: No such file"),
    "key of another": (
        "tls_cert={client.pem}&tls_key={good.key}",
        "{good.key}: key values mismatch",
    ),
    "certificate without key": ("tls_cert={client.pem}", "{client.pem}: no private key in it"),
    "key with a password": (
        "tls_cert={client.pem}&tls_key={secret.key}",
        "{secret.key}: the key has a password",
    ),
}


@pytest.mark.parametrize("case", WRONG_FILES)
def test_a_file_that_cannot_be_used(
    server: Any, scheme: str, certificates: Certificates, case: str
) -> None:
    """Y02: the option, the path and OpenSSL's own reason."""
    names = {name: certificates.file(name) for name in ("client.pem", "client.key", "good.key")}
    names["secret.key"] = certificates.file("secret.key")
    query, reason = (
        _filled(text, {name: str(path) for name, path in names.items()})
        for text in WRONG_FILES[case]
    )
    text = _refusal(_url(server, scheme, f"?{query}"), cwist_jq.InvalidParam)
    assert reason in text
    assert f"{query.rpartition('=')[0].rpartition('&')[2].removeprefix('?')}: cannot use " in text


def _filled(text: str, names: dict[str, str]) -> str:
    for name, path in names.items():
        text = text.replace("{" + name + "}", path)
    return text


def test_an_encoded_path(server: Any, scheme: str, file: _File, tmp_path: Path) -> None:
    odd = tmp_path / "a&b?c@d ü.pem"
    odd.write_bytes(file("ca.pem").read_bytes())
    encoded = "".join(f"%{byte:02X}" for byte in os.fsencode(odd))
    _works(f"{scheme}://{server.host}:{server.tls_port}?tls_ca={encoded}")
