"""Bodies of requests -> what is computed."""

from types import SimpleNamespace

import pytest
from serving.support import SlowModel

from fairseq_ext.tools.serving.limits import Limits
from fairseq_ext.tools.serving.requests import Requests, parse_json
from fairseq_ext.tools.serving.schemas import Refused
from fairseq_ext.tools.serving.served import Pair


class TwoSources(SlowModel):
    def toward(self, direction):
        return SimpleNamespace(direction="xx+zz-yy", sources=("xx", "zz"))

    def length(self, model, item):
        return 1


@pytest.fixture
def requests():
    return Requests({"slow": SlowModel(), "two": TwoSources()}, Limits())


@pytest.mark.parametrize(
    "body, message",
    [
        (b"", "the body is no JSON: Expecting value"),
        (b"{", "the body is no JSON"),
        (b'{"a": NaN}', "NaN is no number of JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b"9" * 5000, "a number of 5000 digits; allowed: at most 100"),
        (b'{"sentences": ["\xff"]}', "byte 16 of the body is no UTF-8"),
        ('{"sentences": ["a"]}'.encode("utf-16"), "byte 0 of the body is no UTF-8"),
    ],
)
def test_what_is_no_json_is_refused(body, message):
    with pytest.raises(Refused) as refused:
        parse_json(body)
    assert refused.value.status == 400 and message in refused.value.message


def test_a_request_for_translations(requests):
    work = requests.work("translate", b'{"sentences": ["a b", ""], "beam": 2, "extras": true}')
    assert work.key.model == "slow" and work.key.direction == "xx-yy"
    assert dict(work.key.options) == {"beam": 2, "extras": True, "attention": False}
    assert work.items == ["a b", ""] and work.lengths == [3, 1]
    other = requests.work("translate", b'{"extras": true, "sentences": ["c"], "beam": 2}')
    assert other.key == work.key


def test_a_whole_number_with_a_point_is_an_integer(requests):
    work = requests.work("translate", b'{"sentences": ["a"], "beam": 3.0, "lenpen": 0.5}')
    options = dict(work.key.options)
    assert options["beam"] == 3 and isinstance(options["beam"], int) and options["lenpen"] == 0.5


@pytest.mark.parametrize("max_beam, beam", [(3, 3), (5, 5), (16, 5)])
def test_the_beam_of_a_request_without_one_is_allowed(max_beam, beam):
    requests = Requests({"slow": SlowModel()}, Limits(max_beam=max_beam))
    work = requests.work("translate", b'{"sentences": ["a"]}')
    assert dict(work.key.options)["beam"] == beam
    described = requests.schemas["translate"]["properties"]["beam"]
    assert (described["default"], described["maximum"]) == (beam, max_beam)


def test_halves_of_surrogate_pairs_are_replaced(requests):
    assert requests.work("classify", rb'{"texts": ["\ud800 a"]}').items == ["\ufffd a"]


def test_pairs_are_scored(requests):
    work = requests.work("score", b'{"sources": ["a"], "targets": ["b"], "attention": true}')
    assert work.items == [Pair("a", "b")] and dict(work.key.options) == {"attention": True}


@pytest.mark.parametrize(
    "operation, body, status, path",
    [
        ("score", '{"sources": ["a"], "targets": ["a", "b"]}', 400, "$.targets"),
        ("translate", '{"sentences": ["a"], "model": "no"}', 404, "$.model"),
        ("translate", '{"sentences": ["a"], "nbest": 6}', 422, "$.nbest"),
        ("translate", '{"sentences": ["a", ["a", "b"]]}', 400, "$.sentences[1]"),
        ("translate", '{"sentences": ["a"], "model": "two"}', 400, "$.sentences[0]"),
        ("translate", '{"sentences": [["a", "b", "c"]], "model": "two"}', 400, "$.sentences[0]"),
    ],
)
def test_what_does_not_fit_is_named(requests, operation, body, status, path):
    with pytest.raises(Refused) as refused:
        requests.work(operation, body.encode())
    assert (refused.value.status, refused.value.path) == (status, path)


def test_several_sources_are_tuples(requests):
    work = requests.work("translate", b'{"sentences": [["a", "b"]], "model": "two"}')
    assert work.items == [("a", "b")]
