"""A server in a thread, its client, and a model whose searches wait for the test."""

import contextlib
import http.client
import json
import threading
from types import SimpleNamespace
from typing import Any, Dict, NamedTuple

from fairseq_ext.tools.serving.app import Application
from fairseq_ext.tools.serving.limits import Limits
from fairseq_ext.tools.serving.server import Server, configuration, listening_socket

PATIENCE = 60  # seconds that a test waits for what should come at once


class Answer(NamedTuple):
    """What the server has answered; value: of its JSON."""

    status: int
    value: Any
    headers: Dict[str, str]


class Client:
    """Asks a server, with a new connection for each request."""

    def __init__(self, port: int, application: Application = None):
        self.port, self.application = port, application

    def ask(self, method, path, body=None, headers=None) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            text = response.read()
        finally:
            connection.close()
        kind = response.getheader("content-type") or ""
        value = json.loads(text) if kind == "application/json" else text
        names = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, value, names)

    def post(self, path, value, **headers) -> Answer:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        return self.ask("POST", path, body, {"Content-Type": "application/json", **headers})

    def get(self, path) -> Answer:
        return self.ask("GET", path)


@contextlib.contextmanager
def running(models, limits=None, hosts=()):
    """A client of a server that runs meanwhile."""
    limits = limits or Limits()
    application, started = Application(models, limits, hosts), threading.Event()
    with listening_socket("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        server = Server(configuration(application, False), application, started.set)
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        assert started.wait(PATIENCE)
        try:
            yield Client(port, application)
        finally:
            server.should_exit = True
            thread.join(PATIENCE)
            application.close()
    assert not thread.is_alive()


class SlowModel:
    """A model that answers with its input when the test lets it.

    batches: what was computed, in order. A sentence "fail" ends its batch with an error, "refuse"
    with one of the caller.
    """

    def __init__(self, is_open=False):
        self.name, self.batches = "slow", []
        self.gate, self.begun = threading.Event(), threading.Semaphore(0)
        if is_open:
            self.gate.set()

    def toward(self, direction):
        return SimpleNamespace(direction="xx-yy", sources=("xx",))

    def check(self, operation, model):
        pass

    def length(self, model, item):
        return len(str(item).split()) + 1

    def description(self):
        return {"name": self.name}

    def run(self, key, items):
        self.batches.append(list(items))
        self.begun.release()
        assert self.gate.wait(PATIENCE)
        if "fail" in items:
            raise RuntimeError("on purpose")
        if "refuse" in items:
            raise ValueError("not this")
        return [{"text": item} for item in items]
