"""The description of the server at /openapi.json."""

from typing import Any, Dict

from ... import __version__
from .limits import Limits
from .schemas import ERROR_ANSWER, LISTS, answer_schema, request_schemas

SUMMARIES = {
    "translate": "Translate sentences",
    "score": "Score given translations",
    "classify": "Label texts",
    "perplexity": "Perplexities of texts by a language model",
}
ERRORS = {
    "400": "No JSON, or JSON of another shape; `path` says where",
    "404": "No such model or direction; `allowed` lists those that there are",
    "408": "The body did not arrive in time",
    "413": "The body is too large",
    "415": "The body is not application/json",
    "421": "The Host of the request is no name of this server",
    "422": "A value outside the limits, or an option that the model does not have",
    "500": "A fault of the server; its log says more",
    "503": "The queue is full; Retry-After says when to come again",
    "504": "Not computed in time",
}


def described(schema: Dict[str, Any], text: str) -> Dict[str, Any]:
    """Return an answer in JSON."""
    return {"description": text, "content": {"application/json": {"schema": schema}}}


def description(limits: Limits) -> Dict[str, Any]:
    """Return the description, in OpenAPI 3.1."""
    error = {"$ref": "#/components/schemas/Error"}
    errors = {status: described(error, text) for status, text in ERRORS.items()}
    paths: Dict[str, Any] = {}
    for operation, schema in request_schemas(limits).items():
        body = {"required": True, "content": {"application/json": {"schema": schema}}}
        answer = described(answer_schema(operation), f"The {LISTS[operation]}, in order")
        paths[f"/{operation}"] = {
            "post": {
                "operationId": operation,
                "summary": SUMMARIES[operation],
                "requestBody": body,
                "responses": {"200": answer, **errors},
            }
        }
    for name, summary in {"models": "The models and limits", "health": "Whether it works"}.items():
        answers = {"200": described({"type": "object"}, summary)}
        if name == "health":
            answers["503"] = described({"type": "object"}, "The server is about to end")
        get = {"operationId": name, "summary": summary, "responses": answers}
        paths[f"/{name}"] = {"get": get}
    return {
        "openapi": "3.1.0",
        "info": {"title": "fairseq-ext serve", "version": __version__},
        "paths": paths,
        "components": {"schemas": {"Error": ERROR_ANSWER}},
    }
