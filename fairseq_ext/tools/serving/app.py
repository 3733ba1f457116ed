"""The application: routes, bodies, errors, and requests that wait for their batch."""

import asyncio
import json
import math
from pathlib import Path
from typing import Any, Awaitable, Callable, Dict, List, Mapping, Optional, Sequence, Set, cast

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ... import __version__
from .batching import Batcher, Job, QueueFull
from .hosts import check_host
from .limits import Limits
from .openapi import description
from .requests import Requests
from .schemas import LISTS, Refused
from .served import Key, ServedModel

PAGE = Path(__file__).with_name("page")
# a client that sends too much reads the answer only when all is sent: so much is read and thrown
# away, in multiples of what is allowed
DISCARDED = 64
CLIENT_IS_GONE = 499  # as nginx logs it; nobody reads the answer
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


class Json(JSONResponse):
    """JSON that any text can be in: halves of surrogate pairs become question marks."""

    def render(self, content: Any) -> bytes:
        """Return the bytes."""
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", errors="replace")


class Application:
    """Answers requests for some models.

    Args:
        models: {name: model}, at least one.
        limits: of the server.
        hosts: names that requests may call it by, beside addresses and localhost; "*" is any.
    """

    def __init__(
        self, models: Mapping[str, ServedModel], limits: Limits, hosts: Sequence[str] = ()
    ):
        self.models, self.limits, self.hosts = models, limits, tuple(hosts)
        self.requests = Requests(models, limits)
        # of the server, each with one request at a time; without a server there is no limit
        self.connections: Callable[[], float] = lambda: math.inf
        self.batcher = Batcher(self._run, limits, lambda: self.connections())
        self.is_ending = False

    def asgi(self) -> ASGIApp:
        """Return the application for a server."""
        routes = [
            Route(f"/{operation}", self._answering(operation), methods=["POST"])
            for operation in LISTS
        ]
        routes += [
            Route("/models", self.list_models),
            Route("/health", self.health),
            Route("/openapi.json", self.openapi),
        ]
        for path in sorted(PAGE.iterdir()):
            routes.append(Route(f"/{path.name}", _file(path)))
        routes.append(Route("/", _file(PAGE / "index.html")))
        handlers: Dict[Any, Any] = {
            Refused: refused,
            HTTPException: http_error,
            Exception: server_error,
        }
        app = Starlette(routes=routes, exception_handlers=handlers)
        return _with_headers(_for_hosts(app, self.hosts))

    def close(self) -> None:
        """Compute what waits, then end the thread of the batches."""
        self.batcher.close()

    def _run(self, key: Key, items: List[Any]) -> List[Any]:
        """Return the results of a batch; called in the thread of the batches."""
        return self.models[key.model].run(key, items)

    # ---------------------------------------------------------------- what is computed

    def _answering(self, operation: str) -> Callable[[Request], Awaitable[Response]]:
        """Return the endpoint of an operation."""

        async def endpoint(request: Request) -> Response:
            check_type(request)
            check_query(request)
            try:
                body = await asyncio.wait_for(self._body(request), self.limits.timeout)
            except asyncio.TimeoutError as error:
                raise Refused(408, "the body did not arrive in time") from error
            except ClientDisconnect:
                return Response(status_code=CLIENT_IS_GONE)
            # in another thread: a new direction waits for the model, long texts take a while to cut
            work = await run_in_threadpool(self.requests.work, operation, body)
            try:
                job = self.batcher.submit(*work)
            except QueueFull as error:
                raise Refused(503, str(error), seconds=error.seconds) from error
            results = await self._results(job, request)
            if results is None:
                return Response(status_code=CLIENT_IS_GONE)
            key = work.key
            answer = {"model": key.model, "direction": key.direction or None}
            return await run_in_threadpool(Json, {**answer, LISTS[operation]: results})

        return endpoint

    async def _body(self, request: Request) -> bytes:
        """Return the body; Refused for one that is too large."""
        allowed, body, size = self.limits.max_body, bytearray(), 0
        async for part in request.stream():
            size += len(part)
            if size <= allowed:
                body += part
            elif size > DISCARDED * allowed:
                break
        if size > allowed:
            raise Refused(413, f"the body is larger than allowed: {allowed} bytes")
        return bytes(body)

    async def _results(self, job: Job, request: Request) -> Optional[List[Any]]:
        """Return the results of a job; None if the client has gone; Refused."""
        done = asyncio.wrap_future(job.future)
        gone = asyncio.ensure_future(_disconnected(request))
        try:
            both: "Set[asyncio.Future[Any]]" = {done, gone}
            finished, _ = await asyncio.wait(
                both, timeout=self.limits.timeout, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            gone.cancel()
        if done in finished:
            return _outcome(done)
        # what is in a batch already goes on, and nobody reads it
        self.batcher.drop(job)
        done.cancel()
        if gone in finished:
            return None
        raise Refused(504, f"not computed within {self.limits.timeout:g} seconds")

    # ---------------------------------------------------------------- what is known

    async def list_models(self, request: Request) -> Response:
        """Return the models and the limits."""
        models = [served.description() for served in self.models.values()]
        return Json({"models": models, "limits": vars(self.limits)})

    async def health(self, request: Request) -> Response:
        """Return whether the server works; 503 when it is about to end."""
        status = {
            "status": "ending" if self.is_ending else "ok",
            "waiting": self.batcher.waiting,
            "version": __version__,
        }
        return Json(status, status_code=503 if self.is_ending else 200)

    async def openapi(self, request: Request) -> Response:
        """Return the description of the interface."""
        return Json(description(self.limits))


def _outcome(done: "asyncio.Future[List[Any]]") -> List[Any]:
    """Return the results of a job that has ended; Refused for what the model does not take."""
    try:
        return done.result()
    except ValueError as error:
        raise Refused(422, str(error)) from error


async def _disconnected(request: Request) -> None:
    """Return when the client has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def check_type(request: Request) -> None:
    """Raise Refused unless the body is JSON in UTF-8, as it is."""
    kind, _, parameters = request.headers.get("content-type", "").lower().partition(";")
    if kind.strip() != "application/json":
        message = f"Content-Type {kind.strip()!r:.60}; allowed: application/json"
        raise Refused(415, message, None, ["application/json"])
    for entry in parameters.split(";"):
        name, _, value = entry.strip().partition("=")
        if name == "charset" and value.strip('"') not in ("utf-8", "utf8"):
            raise Refused(415, f"charset {value!r:.60}; allowed: utf-8", None, ["utf-8"])
    coding = request.headers.get("content-encoding", "identity")
    if coding.lower() != "identity":
        raise Refused(415, f"Content-Encoding {coding!r:.60}; allowed: leave it out")


def check_query(request: Request) -> None:
    """Raise Refused for parameters in the address, which would do nothing."""
    if request.url.query:
        message = f"{request.url.query!r:.60} in the address; allowed: fields of the JSON"
        raise Refused(400, message)


def _file(path: Path) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint of a file of the page."""

    async def endpoint(request: Request) -> Response:
        return FileResponse(path)

    return endpoint


# ---------------------------------------------------------------- errors


async def refused(request: Request, error: Exception) -> Response:
    """Return the answer for a request that is refused."""
    reason = cast(Refused, error)
    content: Dict[str, Any] = {"error": reason.message}
    if reason.path is not None:
        content["path"] = reason.path
    if reason.allowed is not None:
        content["allowed"] = reason.allowed
    headers = {} if reason.seconds is None else {"Retry-After": str(reason.seconds)}
    return Json(content, status_code=reason.status, headers=headers)


async def http_error(request: Request, error: Exception) -> Response:
    """Return the answer for an unknown path or method."""
    reason = cast(HTTPException, error)
    allowed = (reason.headers or {}).get("Allow", "")
    message = f"{request.method} {request.url.path!r:.60}: {reason.detail}"
    if reason.status_code == 404:
        allowed = ", ".join(f"POST /{operation}" for operation in LISTS)
        allowed += ", GET /, /models, /health and /openapi.json"
    if allowed:
        message += f"; allowed: {allowed}"
    return Json({"error": message}, status_code=reason.status_code, headers=reason.headers)


async def server_error(request: Request, error: Exception) -> Response:
    """Return the answer for a fault of ours; the server logs the traceback."""
    return Json({"error": f"{type(error).__name__}: a fault of the server"}, status_code=500)


def _for_hosts(app: ASGIApp, names: Sequence[str]) -> ASGIApp:
    """Return the application so that it answers requests to these hosts, and refuses others."""

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            request = Request(scope)
            check_host(request.headers.getlist("host"), names)
        except Refused as error:
            await (await refused(request, error))(scope, receive, send)
            return
        await app(scope, receive, send)

    return wrapped


def _with_headers(app: ASGIApp) -> ASGIApp:
    """Return the application with headers that forbid what its page does not need."""
    extra = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *extra]}
            await send(message)

        await app(scope, receive, sending if scope["type"] == "http" else send)

    return wrapped
