"""The server of the page: Bokeh's, which brings its own assets, with the metrics beside it.

    /           the page; ?token=… to act on the query, ?look=dark
    /metrics    for Prometheus

It listens on this machine alone unless it is told otherwise, and then control needs a token.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from bokeh.application import Application
from bokeh.application.handlers.function import FunctionHandler
from bokeh.document import Document
from bokeh.server.auth_provider import AuthProvider
from bokeh.server.server import Server
from tornado.ioloop import IOLoop, PeriodicCallback
from tornado.web import HTTPError, RequestHandler

from interpunct.model.errors import FlowError
from interpunct.spark.query import FlowQuery
from interpunct.studio.access import Access, is_loopback
from interpunct.studio.exposition import CONTENT_TYPE, exposition
from interpunct.studio.map_view import MapView
from interpunct.studio.page import Page
from interpunct.studio.replicas import Bench
from interpunct.studio.room import EVERY, Room
from interpunct.studio.watched import Attached, Running, Watched

LONGEST_UNUSED = 15_000  # milliseconds after which a page that was closed is forgotten


@dataclass
class Served:
    """A page that is being served, in a thread of its own or by whoever calls `run`."""

    room: Room
    server: Server
    address: str
    loop: IOLoop
    thread: threading.Thread | None = None

    @property
    def link(self) -> str:
        """Where to look, with the token that allows to act."""
        token = self.room.access.token
        return self.address if token is None else f"{self.address}?token={quote(token)}"

    def close(self) -> None:
        """Stop serving; the query goes on."""
        if self.thread is None:
            self._stop()
            return
        self.loop.add_callback(self._stop)
        self.thread.join()

    def run(self, until: Callable[[], bool] | None = None) -> None:
        """Serve in this thread until interrupted, or until something is so."""
        if until is not None:
            PeriodicCallback(lambda: self.loop.stop() if until() else None, EVERY).start()
        self.loop.start()

    def _stop(self) -> None:
        self.server.stop()
        self.loop.stop()

    def __enter__(self) -> Served:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()


def serve(
    query: FlowQuery | str,
    *,
    views: Sequence[MapView] = (),
    port: int = 5006,
    address: str = "127.0.0.1",
    token: str | None = None,
) -> Served:
    """Show a running query, given as such or by its checkpoint, until the result is closed.

    `views` are sinks of the query that the page draws. With an `address` that others can reach,
    acting on the query needs the `token`; one is made if none is given. Port 0 takes any.
    """
    port = _free(address, port)
    started: Future[Served] = Future()

    def work() -> None:
        try:
            page = opened(watched(query), views=views, port=port, address=address, token=token)
        except BaseException as error:
            started.set_exception(error)
            return
        started.set_result(page)
        page.loop.start()
        page.loop.close()

    thread = threading.Thread(target=work, name="interpunct studio", daemon=True)
    thread.start()
    page = started.result()
    page.thread = thread
    return page


def watched(query: FlowQuery | str) -> Watched:
    return Attached(query) if isinstance(query, str) else Running(query)


def opened(
    query: Watched,
    *,
    views: Sequence[MapView] = (),
    port: int = 5006,
    address: str = "127.0.0.1",
    token: str | None = None,
    bench: Bench | None = None,
    about: str = "",
) -> Served:
    """A page for this thread's loop; nothing happens until that runs. `about` is what whoever
    looks at its sources should know."""
    # A page that somebody has closed is drawn until it is forgotten, and Bokeh warns of each time.
    logging.getLogger("bokeh.server.views.ws").setLevel(logging.ERROR)
    access = Access.at(address, token)
    room = Room(query, access, views, bench, about)
    room.look()
    port = _free(address, port)
    loop = IOLoop(make_current=True)
    server = Server(
        {"/": Application(FunctionHandler(lambda document: _page(room, document)))},
        io_loop=loop, port=port, address=address, auth_provider=Door(access),
        allow_websocket_origin=_origins(address, port),
        extra_patterns=[("/metrics", MetricsPage, {"room": room})],
        check_unused_sessions_milliseconds=LONGEST_UNUSED // 3,
        unused_session_lifetime_milliseconds=LONGEST_UNUSED,
    )  # fmt: skip
    server.start()
    PeriodicCallback(room.look, EVERY).start()
    host = "127.0.0.1" if address in ("0.0.0.0", "::", "") else address
    return Served(room, server, f"http://{host}:{server.port}/", loop)


def _free(address: str, port: int) -> int:
    """The port, or any for 0, if nobody uses it: the origins of the page must be known before it
    is opened."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            raise FlowError(
                "studio", f"an address and a free port, not {address}:{port}", str(error),
                "Choose another with --port, or 0 for any.",
            ) from error  # fmt: skip
        return int(probe.getsockname()[1])


def _origins(address: str, port: int) -> list[str]:
    """Pages of other sites must not speak to a query on this machine; of a page that others reach
    the names are not known, and there control has its token."""
    if not is_loopback(address):
        return ["*"]
    return [f"{name}:{port}" for name in ("127.0.0.1", "localhost")]


def _page(room: Room, document: Document) -> None:
    arguments = document.session_context.request.arguments
    who, look = document.session_context.id, _first(arguments, "look") or "light"
    allowed = room.access.allows(_first(arguments, "token"))
    page = Page(room, document, who, allowed, look)
    document.on_session_destroyed(lambda _: page.gone())


class Door(AuthProvider):  # type: ignore[misc]
    """Whoever comes with a wrong token is turned away; without one he may look."""

    def __init__(self, access: Access) -> None:
        self._access = access
        super().__init__()

    @property
    def get_user(self) -> Callable[[RequestHandler], str]:
        def user(handler: RequestHandler) -> str:
            if self._access.refuses(handler.get_argument("token", None)):
                raise HTTPError(403, reason="wrong token")
            return "someone"

        return user

    @property
    def get_user_async(self) -> None:
        return None

    @property
    def login_url(self) -> str:
        return "/"

    @property
    def get_login_url(self) -> None:
        return None

    @property
    def login_handler(self) -> None:
        return None

    @property
    def logout_url(self) -> None:
        return None

    @property
    def logout_handler(self) -> None:
        return None


class MetricsPage(RequestHandler):
    """For a collector: what the room saw last."""

    def initialize(self, room: Room) -> None:
        self._room = room

    def get(self) -> None:
        now = self._room.history.now
        if now is None:
            raise HTTPError(503, reason="nothing has been seen of the query yet")
        self.set_header("Content-Type", CONTENT_TYPE)
        self.write(exposition(now))


def _first(arguments: dict[str, list[bytes]], name: str) -> str | None:
    found: Any = arguments.get(name)
    return found[0].decode() if found else None
