"""A small Internet for the crawler's process: its certificates, and its public addresses.

The guard works as on the real Internet, except that one network of loopback stands for all public addresses. Addresses
outside it, such as 127.1.0.1, stand for an intranet.
"""

from __future__ import annotations

import ipaddress
import shutil
import ssl
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import crawler.fetch.address_guard

PUBLIC, INTRANET = "127.0.0.0/16", "127.1.0.1"


def be_public(network: str) -> None:
    """Count a network as public from now on, in this process, for every caller of the guard."""
    within, asked = ipaddress.ip_network(network), crawler.fetch.address_guard.is_public

    def is_public(address: str) -> bool:
        try:
            found = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return False
        return found in within or asked(address)

    for name, module in list(sys.modules.items()):
        if name.startswith("crawler.") and getattr(module, "is_public", None) is asked:
            vars(module)["is_public"] = is_public


class Certificates:
    """A test authority and its certificates, created with the openssl command in `folder`."""

    def __init__(self, folder: Path) -> None:
        """Create the authority. `is_there` tells whether the command exists."""
        self._folder = folder
        folder.mkdir(exist_ok=True)
        self.authority = folder / "authority.pem"
        self._run(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=test-authority",
            "-addext basicConstraints=critical,CA:TRUE -keyout authority.key -out authority.pem",
        )

    @staticmethod
    def is_there() -> bool:
        return shutil.which("openssl") is not None

    def server(self, hosts: Mapping[str, str]) -> ssl.SSLContext:
        """A server's context with a certificate for each of `hosts`: good, expired, self-signed or other name."""
        contexts = {host: self._context(host, kind) for host, kind in hosts.items()}

        def choose(connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
            if name in contexts:
                connection.context = contexts[name]

        first = next(iter(contexts.values()))
        first.sni_callback = choose
        return first

    def _context(self, host: str, kind: str) -> ssl.SSLContext:
        name = "other.example" if kind == "other name" else host
        (self._folder / f"{host}.ext").write_text(f"subjectAltName=DNS:{name}\n")
        self._run(
            "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes",
            f"-subj /CN={name} -keyout {host}.key -out {host}.csr",
        )
        ours = "-CA authority.pem -CAkey authority.key -CAcreateserial"
        signer = f"-signkey {host}.key" if kind == "self-signed" else ours
        days = -1 if kind == "expired" else 30
        self._run(f"x509 -req -in {host}.csr {signer} -days {days} -extfile {host}.ext -out {host}.pem")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._folder / f"{host}.pem", self._folder / f"{host}.key")
        return context

    def _run(self, *words: str) -> None:
        command = ["openssl", *(word for text in words for word in text.split())]
        done = subprocess.run(command, cwd=self._folder, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
