"""The JSON bodies of the endpoints, as the OpenAPI document describes them."""

from typing import Any

Schema = dict[str, Any]

_WORKER_ID: Schema = {"type": "string", "minLength": 1, "maxLength": 64}
_WORKER_IDS: Schema = {"type": "array", "items": _WORKER_ID, "maxItems": 16, "example": ["0"]}
_ACTION: Schema = {
    "type": "object",
    "required": ["action", "control_type"],
    "properties": {
        "action": {"type": "array", "items": {}},
        "control_type": {"enum": ["joint_position", "ee_pose"]},
        "is_rel": {"type": "boolean"},
        "base_motion": {"type": "array", "items": {"type": "number"}, "minItems": 3, "maxItems": 3},
    },
}

WORKERS: Schema = {"type": "object", "properties": {"worker_ids": _WORKER_IDS}}
ACTIONS: Schema = {"type": "object", "minProperties": 1, "additionalProperties": _ACTION}
CHUNK: Schema = {"type": "array", "minItems": 1, "items": ACTIONS}


def _under_data(properties: Schema, required: list[str]) -> Schema:
    data = {"type": "object", "properties": properties, "required": required}
    return {"type": "object", "properties": {"data": data}, "required": ["data"]}


WORKER_DATA = _under_data({"worker_ids": _WORKER_IDS}, ["worker_ids"])
LOAD = _under_data({"config_path": {"type": "string"}}, ["config_path"])
JOB = _under_data(
    {
        "config_path": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "run_id": {"type": ["string", "null"]},
        "episodes": {"type": "integer", "minimum": 1},
        "seed": {"type": "integer", "minimum": 0},
    },
    ["config_path"],
)


def describes(schema: Schema) -> dict[str, Any]:
    """The part of an endpoint's description that its own signature cannot give."""
    return {
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
        "responses": {"400": {"description": "the body is not what was expected; `detail` says what and why"}},
    }
