"""The server over HTTP: answers, status codes, and clients that do odd things."""

import collections
import concurrent.futures
import json
import random
import socket
import time

import pytest
from serving.support import PATIENCE, Answer, SlowModel, running

from fairseq_ext.tools.serving.limits import Limits
from fairseq_ext.tools.serving.schemas import ERROR_ANSWER, LISTS, answer_schema, check

REQUESTS = [
    ("translate", {"sentences": ["an1 av2", "an1", "\u2028 \U0001f600"], "max_len_b": 5}),
    ("translate", {"model": "dual", "direction": "yy-xx", "sentences": ["un1"], "dual_alpha": 0.5,
                   "extras": True, "attention": True, "max_len_b": 5, "beam": 2, "nbest": 2}),
    ("translate", {"model": "routed", "sentences": ["an1"], "extras": True, "max_len_b": 5}),
    ("translate", {"model": "sources", "direction": "xx+zz-yy", "sentences": [["an1", "in3"]],
                   "source_average": "late", "max_len_b": 5}),
    ("translate", {"model": "both", "direction": "label-text", "sentences": ["pos"],
                   "max_len_b": 5}),
    ("score", {"sources": ["an1", "an2"], "targets": ["un1", ""], "attention": True}),
    ("classify", {"model": "labels", "texts": ["good film", "it"]}),
    ("classify", {"model": "both", "texts": ["good film"]}),
    ("perplexity", {"model": "language", "texts": ["un1 uv2"]}),
]  # fmt: skip


@pytest.mark.parametrize("operation, value", REQUESTS)
def test_answers_have_the_described_shape(operation, value, several):
    answer = several.post(f"/{operation}", value)
    assert answer.status == 200, answer.value
    check(answer.value, answer_schema(operation))
    texts = value.get("sentences") or value.get("sources") or value.get("texts")
    results = answer.value[LISTS[operation]]
    assert [result["source"] for result in results] == texts
    assert not any(result["error"] for result in results)
    assert answer.headers["content-type"] == "application/json"


WRONG = [
    (b"{", 400, "the body is no JSON", None),
    (b'{"sentences": ["\xff\xfe"]}', 400, "is no UTF-8", None),
    (b'{"sentences": ["a"], "sentences": ["b"]}', 400, "'sentences' is there twice", None),
    ({"texts": ["a"]}, 400, "'sentences' is missing", "$"),
    ({"sentences": [["a", "b"]]}, 400, "an array of 2; allowed: a string", "$.sentences[0]"),
    ({"sentences": ["a"], "model": "no"}, 404, "there is no model 'no'", "$.model"),
    ({"sentences": ["a"], "direction": "xx-qq"}, 404, "no direction 'xx-qq'", "$.direction"),
    ({"sentences": ["a" * 101]}, 422, "101 characters; allowed: at most 100", "$.sentences[0]"),
    ({"sentences": ["a"], "beam": 7}, 422, "7; allowed: 1 to 6", "$.beam"),
    ({"sentences": ["a"], "well_formed_targets": True}, 422, "has no such option", None),
    ({"sentences": ["a"], "model": "language"}, 422, "is for language_model; allowed: /perp", None),
    (b" " * 20_001, 413, "larger than allowed: 20000 bytes", None),
    (json.dumps({"sentences": ["a" * 10_000_000]}).encode(), 413, "larger than allowed", None),
    ({"sentences": ["a"], "\ud800": 1}, 400, "is unknown", "$"),
]


@pytest.mark.parametrize("value, status, message, path", WRONG)
def test_a_wrong_request_is_answered_with_what_is_wrong(value, status, message, path, several):
    answer = several.post("/translate", value)
    assert answer.status == status
    check(answer.value, ERROR_ANSWER)
    assert message in answer.value["error"] and answer.value.get("path") == path
    assert several.get("/health").status == 200


VALUES = [None, True, 0, -1, 1, 3, 10**30, 0.5, 1e308, "", "an1", "xx-yy", "yy-xx", "dual", [], {}]
VALUES += [["an1"], ["an1", ""], [["an1", "in1"]], [1], [None], "\ud800", "\x00", ["\x00</s>"]]


VALID = {
    "translate": {"sentences": ["an1"], "max_len_b": 5},
    "score": {"sources": ["an1"], "targets": ["un1"]},
    "classify": {"texts": ["good"], "model": "labels"},
    "perplexity": {"texts": ["un1"], "model": "language"},
}
PLAUSIBLE = {
    "model": ["dual", "routed", "labels", "both", "no"],
    "direction": ["xx-yy", "yy-xx", "xx-qq", "xx+zz-yy", "-"],
    "sentences": [["a", ""], ["a" * 200], [["a", "b"]]],
    "attention": [True, False],
    "dual_alpha": [0, 0.5, 1, 2],
}


def test_random_requests_are_answered_or_refused(several):
    rng, statuses = random.Random(5), collections.Counter()
    schemas = several.application.requests.schemas
    for _ in range(300):
        operation = rng.choice(list(VALID))
        body = dict(VALID[operation])
        names = [*schemas[operation]["properties"], *PLAUSIBLE][: 3 * len(VALID[operation]) + 8]
        for name in rng.sample(names, rng.randint(0, 2)):
            values = PLAUSIBLE.get(name, [1, 2, 7]) if rng.random() < 0.7 else VALUES
            body[name] = rng.choice(values)
        answer = several.post(f"/{operation}", body if rng.random() < 0.95 else rng.choice(VALUES))
        statuses[answer.status] += 1
        assert answer.status in (200, 400, 404, 422), (operation, body, answer)
    assert min(statuses[status] for status in (200, 400, 404, 422)) > 5, statuses


def test_errors_say_what_is_allowed(several):
    answer = several.post("/translate", {"sentences": ["a"], "direction": "no"})
    assert answer.value["allowed"] == ["xx-yy", "yy-xx"]
    answer = several.post("/translate", {"sentences": ["a"], "model": "no"})
    assert "dual" in answer.value["allowed"]


def test_other_types_paths_and_methods(several):
    answer = several.ask("POST", "/translate", b"{}", {"Content-Type": "text/plain"})
    assert answer.status == 415 and "allowed: application/json" in answer.value["error"]
    assert several.ask("POST", "/translate", b"{}").status == 415
    json = {"Content-Type": "application/json; charset=UTF-8"}
    body = b'{"sentences": ["a"]}'
    assert several.ask("POST", "/translate", body, json).status == 200
    for header, value, message in (
        ("Content-Type", "application/json; charset=latin-1", "charset 'latin-1'; allowed: utf-8"),
        ("Content-Encoding", "gzip", "Content-Encoding 'gzip'; allowed: leave it out"),
    ):
        answer = several.ask("POST", "/translate", body, {**json, header: value})
        assert (answer.status, answer.value["error"]) == (415, message)
    answer = several.get("/nothing")
    assert answer.status == 404 and "Not Found; allowed: POST /" in answer.value["error"]
    answer = several.get("/translate")
    assert answer.status == 405 and answer.headers["allow"] == "POST"
    for path in ("/../limits.py", "/%2e%2e/limits.py", "//etc/passwd"):
        assert several.get(path).status == 404


def test_options_in_the_address_are_refused(several):
    answer = several.post("/translate?beam=2", {"sentences": ["a"]})
    assert answer.status == 400
    assert answer.value["error"] == "'beam=2' in the address; allowed: fields of the JSON"


def test_models_health_and_description(several):
    value = several.get("/models").value
    names = ["dual", "routed", "labels", "language", "both", "sources"]
    assert [model["name"] for model in value["models"]] == names
    assert value["limits"]["max_beam"] == 6
    assert several.get("/health").value["status"] == "ok"
    assert "/translate" in several.get("/openapi.json").value["paths"]


def test_the_page_is_served_and_may_fetch_nothing_else(several):
    answer = several.get("/")
    assert answer.status == 200 and b"<!doctype html>" in answer.value.lower()
    assert answer.headers["content-security-policy"].startswith("default-src 'self'")
    assert answer.headers["x-content-type-options"] == "nosniff"


# ---------------------------------------------------------------- load


def translate(client, *sentences) -> Answer:
    return client.post("/translate", {"sentences": list(sentences)})


def busy(client, model, pool):
    """A request whose batch waits at the gate."""
    future = pool.submit(translate, client, "first")
    assert model.begun.acquire(timeout=PATIENCE)
    return future


def wait_for(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def pool():
    with concurrent.futures.ThreadPoolExecutor(32) as executor:
        yield executor


def test_requests_of_several_clients_are_one_batch(pool):
    model = SlowModel()
    with running({"slow": model}) as client:
        first = busy(client, model, pool)
        others = [pool.submit(translate, client, f"s{n}") for n in range(20)]
        wait_for(lambda: client.application.batcher.waiting == 20)
        model.gate.set()
        for number, future in enumerate(others):
            (result,) = future.result().value["translations"]
            assert result["text"] == f"s{number}"
        assert first.result().status == 200
    assert [len(batch) for batch in model.batches] == [1, 20]


def test_a_full_queue_is_503_with_retry_after(pool):
    model = SlowModel()
    with running({"slow": model}, Limits(max_queue=2, max_sentences=2)) as client:
        busy(client, model, pool)
        waiting = pool.submit(translate, client, "a", "b")
        wait_for(lambda: client.application.batcher.waiting == 2)
        answer = translate(client, "c")
        assert answer.status == 503 and int(answer.headers["retry-after"]) >= 1
        assert "2 sentences wait already; allowed: 2" in answer.value["error"]
        assert client.get("/health").value["waiting"] == 2
        model.gate.set()
        assert waiting.result().status == 200


def test_a_slow_answer_is_504_and_is_not_computed_later(pool):
    model = SlowModel()
    with running({"slow": model}, Limits(timeout=0.3)) as client:
        first = busy(client, model, pool)
        late = translate(client, "late")
        assert late.status == 504 and "within 0.3 seconds" in late.value["error"]
        assert first.result().status == 504
        model.gate.set()
        wait_for(lambda: translate(client, "next").status == 200)
    assert ["late"] not in model.batches


def request_bytes(body: bytes, length=None):
    length = len(body) if length is None else length
    head = "POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {length}\r\n\r\n".encode() + body


def test_who_goes_away_costs_no_search(pool):
    model = SlowModel()
    with running({"slow": model}) as client:
        first = busy(client, model, pool)
        with socket.create_connection(("127.0.0.1", client.port)) as connection:
            connection.sendall(request_bytes(b'{"sentences": ["gone", "gone"]}'))
            wait_for(lambda: client.application.batcher.waiting == 2)
        wait_for(lambda: client.application.batcher.waiting == 0)
        model.gate.set()
        assert first.result().status == 200 and translate(client, "next").status == 200
    assert model.batches == [["first"], ["next"]]


def test_who_stops_in_the_middle_of_a_body_harms_nobody(capfd):
    model = SlowModel(is_open=True)
    with running({"slow": model}, Limits(timeout=0.2)) as client:
        with socket.create_connection(("127.0.0.1", client.port)) as connection:
            connection.sendall(request_bytes(b'{"sent', length=100))
            assert connection.recv(100).startswith(b"HTTP/1.1 408 ")
        with socket.create_connection(("127.0.0.1", client.port)) as connection:
            connection.sendall(request_bytes(b'{"sent', length=100))
        with socket.create_connection(("127.0.0.1", client.port)) as connection:
            connection.sendall(b"\x16\x03\x01 no http\r\n\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.1 400 ")
        assert translate(client, "next").status == 200
    assert "Traceback" not in capfd.readouterr().err


def test_a_fault_is_500_and_the_server_goes_on(capfd):
    model = SlowModel(is_open=True)
    with running({"slow": model}) as client:
        answer = translate(client, "fail")
        assert answer.status == 500
        assert answer.value["error"] == "RuntimeError: a fault of the server"
        assert translate(client, "refuse").status == 422
        assert translate(client, "next").status == 200
    assert "RuntimeError: on purpose" in capfd.readouterr().err  # the log says where
