"""An HTTP proxy on loopback: tunnels, all to one server, with a log of what it was asked."""

from __future__ import annotations

import asyncio

from tests.support.web.server_thread import ServerThread


class ForwardProxy(ServerThread):
    """Opens tunnels to `target` (address:port); with `refuses` it answers with this status, or only for one host."""

    def __init__(self, target: str, refuses: int = 0, host: str = "") -> None:
        super().__init__()
        self._to = target.split(":")
        self._refuses, self._host = refuses, host
        self.asked: list[str] = []  # request lines
        self.headers: list[dict[str, str]] = []
        self.port = 0

    async def serve(self) -> None:
        server = await asyncio.start_server(self._handle, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line, *rest = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            self.asked.append(line)
            self.headers.append(dict(header.split(": ", 1) for header in rest if header))
            is_refused = self._refuses and line.startswith(f"CONNECT {self._host}")
            status = self._refuses if is_refused else 0 if line.startswith("CONNECT ") else 405
            if status:
                writer.write(f"HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n".encode())
                return
            far_reader, far_writer = await asyncio.open_connection(*self._to)
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await asyncio.gather(_pipe(reader, far_writer), _pipe(far_reader, writer))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
    except ConnectionError:
        pass
    finally:
        writer.close()
