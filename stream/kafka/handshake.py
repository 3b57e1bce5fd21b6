"""The reason why a broker that accepts connections refuses this client: TLS, SASL mechanism or password.

kafka-python retries a refused handshake until its time is over, and then reports only that it could not bootstrap. So
this module connects once more, with two requests of the Kafka protocol: SaslHandshake, which every listener answers,
and SaslAuthenticate for the mechanism PLAIN.
"""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

_WAIT_S = 3.0
_ANSWER_BYTES = 65_536  # a longer answer is not one to these requests
_SASL_HANDSHAKE, _SASL_AUTHENTICATE = 17, 36
_NO_SASL, _WRONG_PASSWORD = 34, 58  # error codes: the listener has no SASL; user or password are wrong
_HOW = "set kafka.client.security_protocol"


class Listener(NamedTuple):
    """A broker's listener."""

    tls: bool
    mechanisms: Sequence[str]  # of SASL; none = the listener has no SASL


def refusal(servers: Sequence[str], client: Mapping[str, Any]) -> str:
    """The reason why the first listener refuses these options of kafka-python, and the setting to change; "" = unknown.

    The password is sent only to a listener of that protocol, and over TLS only if its certificate is trusted.
    """
    protocol = client.get("security_protocol", "PLAINTEXT")
    for server in servers:
        host, _, port = server.strip().rpartition(":")
        address = host.strip("[]"), int(port)
        listener = _look(address)
        if listener is None:
            continue
        wanted = ("SASL_" if listener.mechanisms else "") + ("SSL" if listener.tls else "PLAINTEXT")
        if protocol != wanted:
            return f"{server} speaks {wanted}, this client {protocol}: {_HOW} = {wanted!r}"
        mechanism = client.get("sasl_mechanism", "")
        if listener.mechanisms and mechanism not in listener.mechanisms:
            offered = ", ".join(listener.mechanisms)
            return f"{server} offers the SASL mechanisms {offered}, not {mechanism}: set kafka.client.sasl_mechanism"
        if listener.tls and (distrust := _distrust(address, client)):
            return f"{server}: {distrust}: set kafka.client.ssl_cafile to the certificate of its authority"
        if mechanism == "PLAIN" and _is_refused(address, listener, client):
            return f"{server} refuses the user or the password: set kafka.client.sasl_plain_username and _password"
    return ""


def _look(address: tuple[str, int]) -> Listener | None:
    """The listener at an address; None if it does not answer as a Kafka broker."""
    unchecked = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # accepts any certificate; nothing secret is sent over it
    unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
    for tls in (None, unchecked):
        try:
            with _connect(address, tls) as connection:
                code, mechanisms = _handshake(connection, "ANY")  # an unknown name: all mechanisms are listed
        except (OSError, ValueError, struct.error):
            continue
        return Listener(tls is not None, () if code == _NO_SASL else mechanisms)
    return None


def _distrust(address: tuple[str, int], client: Mapping[str, Any]) -> str:
    """Why this client does not trust the certificate; "" = it does, or the broker did not answer."""
    try:
        _connect(address, _trusting(client)).close()
    except ssl.SSLError as error:
        return str(error.reason or error)
    except OSError:
        return ""
    return ""


def _is_refused(address: tuple[str, int], listener: Listener, client: Mapping[str, Any]) -> bool:
    user, password = client.get("sasl_plain_username", ""), client.get("sasl_plain_password", "")
    said = f"\0{user}\0{password}".encode()
    try:
        with _connect(address, _trusting(client) if listener.tls else None) as connection:
            _handshake(connection, "PLAIN")
            answer = _ask(connection, _SASL_AUTHENTICATE, 0, struct.pack(">i", len(said)) + said)
            return bool(struct.unpack_from(">h", answer)[0] == _WRONG_PASSWORD)
    except (OSError, ValueError, struct.error):
        return False


def _connect(address: tuple[str, int], tls: ssl.SSLContext | None) -> socket.socket:
    connection = socket.create_connection(address, _WAIT_S)
    try:
        return connection if tls is None else tls.wrap_socket(connection, server_hostname=address[0])
    except BaseException:
        connection.close()
        raise


def _trusting(client: Mapping[str, Any]) -> ssl.SSLContext:
    """A TLS context that checks certificates as this client does."""
    context = ssl.create_default_context(cafile=client.get("ssl_cafile"))
    context.check_hostname = bool(client.get("ssl_check_hostname", True))
    return context


def _handshake(connection: socket.socket, mechanism: str) -> tuple[int, list[str]]:
    """Error code and mechanisms of the listener."""
    name = mechanism.encode()
    answer = _ask(connection, _SASL_HANDSHAKE, 1, struct.pack(">h", len(name)) + name)
    code, count = struct.unpack_from(">hi", answer)
    at, names = 6, []
    for _ in range(count):
        (size,) = struct.unpack_from(">h", answer, at)
        names.append(answer[at + 2 : at + 2 + size].decode())
        at += 2 + size
    return int(code), names


def _ask(connection: socket.socket, key: int, version: int, body: bytes) -> bytes:
    """Send a request; returns the body of the answer. Raises ValueError for an answer outside the Kafka protocol."""
    request = struct.pack(">hhih", key, version, 1, -1) + body
    connection.sendall(struct.pack(">i", len(request)) + request)
    size, number = struct.unpack(">ii", _receive(connection, 8))
    if number != 1 or not 4 <= size <= _ANSWER_BYTES:
        raise ValueError("no answer of the Kafka protocol")
    return _receive(connection, size - 4)


def _receive(connection: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        part = connection.recv(size - len(received))
        if not part:
            raise ValueError("the connection was closed")
        received += part
    return received
