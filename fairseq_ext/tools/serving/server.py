"""The process: its socket, its signals, and how it ends."""

import asyncio
import contextlib
import errno
import signal
import socket
import threading
from typing import Callable, Iterator, List, Optional

import uvicorn

from .. import UsageError
from .app import Application

# seconds in which requests on open connections are still taken after the signal to end
GRACE = 0.5
BACKLOG = 2048


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens; UsageError where it cannot."""
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise UsageError(f"--host {host!r}: {error.strerror}; allowed: an address here") from error
    # with its protocol: asyncio switches Nagle's algorithm off only for what says that it is TCP,
    # and an answer in two parts waits for the client's delayed acknowledgement (40 ms) with it
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        # at once: of two servers that start together the second is told so
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise UsageError(
                f"--port {port}: another program listens on {host}; allowed: another port, or 0 "
                "for any that is free"
            ) from error
        raise UsageError(f"--host {host} --port {port}: {error.strerror}") from error
    return listener


def address_of(listener: socket.socket) -> str:
    """Return the address for a browser."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


class Server(uvicorn.Server):
    """uvicorn's server, which answers all that it has accepted before it ends.

    Args:
        config: of uvicorn.
        application: that is served.
        started: called when requests are answered.
    """

    def __init__(
        self, config: uvicorn.Config, application: Application, started: Callable[[], None]
    ):
        super().__init__(config)
        self.application, self.announce = application, started
        application.connections = lambda: len(self.server_state.connections)

    async def startup(self, sockets: Optional[List[socket.socket]] = None) -> None:
        """Begin to answer."""
        await super().startup(sockets)
        self.announce()

    async def shutdown(self, sockets: Optional[List[socket.socket]] = None) -> None:
        """Answer what is under way; new connections are refused."""
        self.application.is_ending = True
        for server in self.servers:
            server.close()
        # uvicorn closes connections without a request at once, also those whose request is on its
        # way: it is given time to arrive
        await asyncio.sleep(GRACE)
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End on SIGTERM and SIGINT with status 0: uvicorn would raise them again at the end."""
        with contextlib.ExitStack() as stack:
            # signals go to the main thread; a server in another one is ended by `should_exit`
            is_main = threading.current_thread() is threading.main_thread()
            for number in (signal.SIGINT, signal.SIGTERM) if is_main else ():
                stack.callback(signal.signal, number, signal.signal(number, self.handle_exit))
            yield


def configuration(application: Application, access_log: bool) -> uvicorn.Config:
    """Return uvicorn's configuration: one process, without what the server does not need."""
    return uvicorn.Config(
        application.asgi(),
        http="h11",
        ws="none",
        lifespan="off",
        log_level="info" if access_log else "warning",
        access_log=access_log,
        server_header=False,
        backlog=BACKLOG,
    )


def serve(
    application: Application,
    listener: socket.socket,
    started: Callable[[], None],
    access_log: bool = False,
) -> None:
    """Answer requests until SIGTERM or SIGINT, then those that were accepted."""
    try:
        Server(configuration(application, access_log), application, started).run([listener])
    finally:
        application.close()
