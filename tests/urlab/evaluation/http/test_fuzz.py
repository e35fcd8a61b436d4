"""Requests made up from the server's own description find no way to make it fail."""

from typing import Any

import pytest

schemathesis = pytest.importorskip("schemathesis")

from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

PATHS = (
    "/create_workers",
    "/reset",
    "/reset_result",
    "/step",
    "/step_chunk",
    "/kill",
    "/start_new_job",
    "/load_config",
)


@pytest.fixture(scope="module")
def schema(server: Any) -> Any:
    """The server's OpenAPI document, with a worker that can be stepped."""
    raw = server.client()
    raw.start("easy", episodes=9)
    raw.pickled("/reset", {"worker_ids": ["0"]})
    raw.close()
    return schemathesis.openapi.from_url(f"{server.url}/openapi.json")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", [path for path in PATHS if path != "/reset"])
def test_made_up_requests_are_never_a_server_error(schema: Any, path: str) -> None:
    """Without /reset, which would start a process for every worker id that is made up."""

    @given(case=schema[path]["POST"].as_strategy())
    @settings(max_examples=10, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    def check(case: Any) -> None:
        assert case.call().status_code in (200, 400)

    check()


def test_made_up_bytes_are_never_a_server_error(server: Any) -> None:
    raw = server.client()

    @given(
        body=st.binary(max_size=200),
        path=st.sampled_from(PATHS),
        content_type=st.sampled_from(["application/octet-stream", "application/json", "application/msgpack"]),
    )
    @settings(max_examples=150, deadline=None, database=None)
    def check(body: bytes, path: str, content_type: str) -> None:
        if path != "/reset" or body:
            assert raw.send("POST", path, body, content_type)[0] in (200, 400)

    check()
    raw.close()
