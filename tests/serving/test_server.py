"""The process: signals lose no accepted request, a port is taken once."""

import asyncio
import concurrent.futures
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from common import inprocess  # noqa: F401  (tests of this folder import fairseq once)
from serving.support import PATIENCE, Client, SlowModel, running

from fairseq_ext.tools import UsageError
from fairseq_ext.tools.serving.limits import Limits
from fairseq_ext.tools.serving.server import address_of, listening_socket


def test_the_address_is_for_a_browser():
    with listening_socket("127.0.0.1", 0) as listener:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", address_of(listener))


def test_a_taken_port_is_named():
    with listening_socket("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(UsageError, match=f"--port {port}: another program listens on 127"):
            listening_socket("127.0.0.1", port)


@pytest.mark.parametrize("host", ["not a host", "203.0.113.7"])
def test_a_host_that_is_none_of_ours_is_named(host):
    with pytest.raises(UsageError, match=f"--host '?{host}'?"):
        listening_socket(host, 0)


def test_answers_do_not_wait_for_acknowledgements():
    # with Nagle's algorithm an answer takes 40 ms more

    async def accepted(listener):
        connection = asyncio.get_running_loop().create_future()

        async def note(reader, writer):
            connection.set_result(writer)

        async with await asyncio.start_server(note, sock=listener):
            with socket.create_connection(listener.getsockname()):
                writer = await asyncio.wait_for(connection, PATIENCE)
                peer = writer.get_extra_info("socket")
                no_delay = peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
                writer.close()
        return no_delay

    with listening_socket("127.0.0.1", 0) as listener:
        assert asyncio.run(accepted(listener))


def test_a_single_client_waits_for_nobody():
    limits = Limits(max_wait=1000 * PATIENCE)
    with running({"slow": SlowModel(is_open=True)}, limits) as client:
        assert client.post("/translate", {"sentences": ["a"]}).status == 200


def test_ending_answers_what_was_accepted():
    """Requests in a batch, in the queue, and those that arrive on connections that are open."""
    model = SlowModel()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        with running({"slow": model}) as client:
            # accepted, but nothing is sent yet
            connection = socket.create_connection(("127.0.0.1", client.port))
            asked = [
                pool.submit(client.post, "/translate", {"sentences": [str(number)]})
                for number in range(5)
            ]
            assert model.begun.acquire(timeout=PATIENCE)
            while client.application.batcher.waiting + sum(map(len, model.batches)) < 5:
                time.sleep(0.01)
            threading.Timer(0.3, model.gate.set).start()
            late = pool.submit(health_while_ending, client, connection)
        assert [answer.result().status for answer in asked] == [200] * 5
        assert b'"status":"ending"' in late.result()
        with pytest.raises(ConnectionRefusedError):
            client.get("/health")


def health_while_ending(client, connection):
    """What the server answers on a connection that was open before it was told to end."""
    while not client.application.is_ending:
        time.sleep(0.01)
    with connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return b"".join(iter(lambda: connection.recv(4096), b""))


@contextlib.contextmanager
def served(folder, *options):
    """(process, client) of a server in a process of its own."""
    words = [sys.executable, "-W", "ignore", "-m", "_fairseq_ext_cli", "serve", *options]
    process = subprocess.Popen(
        [*map(str, words), "--port", "0", "--threads", "1", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        printed = ""
        while "serving at" not in printed:
            line = process.stdout.readline()
            assert line, printed
            printed += line
        yield process, Client(int(re.search(r"http://127.0.0.1:(\d+)/", printed).group(1)))
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_a_signal_ends_the_process_when_all_is_answered(number, checkpoint_of, data, tmp_path):
    os.symlink(checkpoint_of("dual_transformer"), tmp_path / "model.pt")
    with served(f"toy={tmp_path / 'model.pt'}", "--data", data["two"]) as (process, client):
        sentences = [f"an{n % 9} av{n % 8} an{n % 7}" for n in range(64)]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            value = {"sentences": sentences, "beam": 16, "model": "toy"}
            asked = [pool.submit(client.post, "/translate", value) for _ in range(8)]
            while not client.get("/health").value["waiting"]:
                assert not any(answer.done() for answer in asked)
            process.send_signal(number)
            statuses = [answer.result().status for answer in asked]
        output, _ = process.communicate(timeout=PATIENCE)
    # sent before or after the signal: answered, or never accepted
    assert statuses == [200] * 8
    assert process.returncode == 0 and "all requests are answered" in output


@pytest.mark.slow
def test_32_clients_get_answers_until_the_server_ends(checkpoint_of, data, tmp_path):
    """Clients that ask without a pause: each answer is whole, also while the server ends."""
    os.symlink(checkpoint_of("dual_transformer"), tmp_path / "model.pt")
    answered, failures, refused = [], [], []
    with served(tmp_path / "model.pt", "--data", data["two"]) as (process, client):
        ending = threading.Event()

        def ask_on(number):
            while True:
                value = {"sentences": [f"an{number % 9} av{number % 8}"], "max_len_b": 8}
                try:
                    answer = client.post("/translate", value)
                except ConnectionRefusedError:
                    refused.append(number)
                    return
                except OSError as error:
                    failures.append((ending.is_set(), repr(error)))
                    return
                answered.append(answer.status)

        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            clients = [pool.submit(ask_on, number) for number in range(32)]
            time.sleep(15)
            before = len(answered)
            ending.set()
            process.send_signal(signal.SIGTERM)
            for entry in clients:
                entry.result(PATIENCE)
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    # a connection that the kernel has made and the server has not accepted may be reset
    assert all(is_ending and "reset" in error.lower() for is_ending, error in failures), failures
    assert set(answered) == {200} and before > 100
    assert len(refused) + len(failures) == 32
