"""The description names what the server has, and its references lead somewhere."""

import json
import re

from fairseq_ext.tools.serving.limits import Limits
from fairseq_ext.tools.serving.openapi import description
from fairseq_ext.tools.serving.schemas import LISTS


def test_every_operation_is_described():
    text = description(Limits(max_sentences=3))
    assert text["openapi"].startswith("3.1")
    assert set(text["paths"]) == {f"/{name}" for name in (*LISTS, "models", "health")}
    body = text["paths"]["/translate"]["post"]["requestBody"]["content"]["application/json"]
    assert body["schema"]["properties"]["sentences"]["maxItems"] == 3
    for path in text["paths"].values():
        for operation in path.values():
            assert operation["summary"] and "200" in operation["responses"]


def test_references_lead_somewhere():
    text = description(Limits())
    for reference in set(re.findall(r'"\$ref": "#/([^"]+)"', json.dumps(text))):
        place = text
        for name in reference.split("/"):
            place = place[name]
        assert place["type"] == "object"
