"""A TLS server that shows any certificate and notes what it hears."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from typing import Self

from tests.certificates import Certificates

_INFO = (
    b'INFO {"server_id":"X","version":"2.15.1","max_payload":1048576,"proto":1,"headers":true,'
    b'"tls_required":true}\r\n'
)


class Impostor:
    """Listens on a free loopback port. With `greets` it speaks first, as NATS does."""

    host = "127.0.0.1"

    def __init__(self, certificates: Certificates, own: str, *, greets: bool) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(
            certificates.file(f"{own}.pem"), certificates.file(f"{own}.key")
        )
        self._context.sni_callback = lambda _, name, __: self.names.append(name or "")
        self._greets = greets
        self.names: list[str] = []
        self.received = b""
        self.handshakes = 0
        self._listener = socket.create_server((self.host, 0))
        self.tls_port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        client.settimeout(5.0)
        with contextlib.suppress(OSError), client:
            if self._greets:
                client.sendall(_INFO)
            self.handshakes += 1
            with self._context.wrap_socket(client, server_side=True) as encrypted:
                while data := encrypted.recv(65536):
                    self.received += data

    def close(self) -> None:
        """Stops listening."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
