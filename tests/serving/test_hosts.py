"""Requests to names that are not the server's are refused: DNS rebinding."""

from argparse import ArgumentTypeError

import pytest
from serving.support import SlowModel, running

from fairseq_ext.__main__ import main
from fairseq_ext.tools.serving import command, server
from fairseq_ext.tools.serving.hosts import host_name, is_allowed
from fairseq_ext.tools.serving.schemas import ERROR_ANSWER, check

ALLOWED = ["127.0.0.1", "127.0.0.1:8000", "localhost", "LocalHost:80", "a.localhost", "10.1.2.3:9"]
ALLOWED += ["[::1]", "[::1]:8000", "localhost.:8000", "Model.example.org:443"]
REFUSED = ["evil.org", "evil.org:8000", "localhost.evil.org", "127.0.0.1.evil.org", "evillocalhost"]
REFUSED += ["other.model.example.org", "", ":8000", "[evil.org]", "1.2.3"]


@pytest.mark.parametrize(
    "host, answer", [(h, True) for h in ALLOWED] + [(h, False) for h in REFUSED]
)
def test_hosts(host, answer):
    assert is_allowed(host, ["model.example.org"]) is answer
    assert is_allowed(host, ["*"])


@pytest.mark.parametrize("path", ["/", "/app.js", "/models", "/health", "/nowhere"])
def test_another_name_is_refused_everywhere(path):
    with running({"slow": SlowModel(is_open=True)}, hosts=["model.example.org"]) as client:
        answer = client.ask("GET", path, headers={"Host": "evil.org:8000"})
        assert answer.status == 421
        check(answer.value, ERROR_ANSWER)
        assert "'evil.org:8000'; allowed: addresses, localhost" in answer.value["error"]
        assert "content-security-policy" in answer.headers
        status = client.get(path).status
        assert (
            status == client.ask("GET", path, headers={"Host": "model.example.org"}).status != 421
        )


@pytest.mark.parametrize("text", ["http://a", "a:80", "", "*.a.org", "a/b", "a b", ".."])
def test_names_that_are_none(text):
    with pytest.raises(ArgumentTypeError, match="allowed: a name without a port, or"):
        host_name(text)


def test_the_command_passes_them_on(monkeypatch, tmp_path):
    applications = []
    monkeypatch.setattr(command, "load_model", lambda *_: SlowModel())
    monkeypatch.setattr(SlowModel, "summary", lambda _: "a model", raising=False)
    monkeypatch.setattr(server, "serve", lambda application, *_: applications.append(application))
    words = ["--host", "localhost", "--port", "0", "--allow-host", "A.org.", "--allow-host", "*"]
    assert main(["serve", str(tmp_path), *words]) == 0
    assert applications[0].hosts == ("localhost", "a.org", "*")
    applications[0].close()
