"""Long runs that the everyday suite leaves out: pytest -m soak."""

import resource

import pytest

from urlab.child_process import ServerProcess
from urlab_client import URLabClient

STEPS = 200_000


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_two_hundred_thousand_lockstep_steps_without_an_error_or_growth(tmp_path):
    with ServerProcess("demo", "--project", str(tmp_path)) as server:
        address, _, port = server.endpoints["step"].rpartition(":")
        with URLabClient(address, step_port=int(port), step_mode="direct") as client:
            client.discover()
            client.reset()
            for done in range(1, STEPS + 1):
                assert client.step()["step"] == done
                if done == STEPS // 4:
                    early = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        late = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert late - early < 20_000, "kilobytes that this client grew by"
