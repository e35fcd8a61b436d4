from typing import Any

import pytest

from urlab_client import ControllerKind, URLabClient, URLabController, URLabPDController


@pytest.fixture
def pd(client: URLabClient) -> URLabPDController:
    controller = client.articulations["arm"].controller
    assert isinstance(controller, URLabPDController)
    return controller


def test_the_kind_decides_the_class(client: URLabClient, pd: URLabPDController):
    assert pd.kind is ControllerKind.PD
    assert client.articulations["dog"].controller is None
    assert URLabController("x", "future_kind").kind == "future_kind"


@pytest.mark.parametrize(
    ("params", "complaint"),
    [
        ({"bogus": 1.0}, "no param 'bogus'; there are kp"),
        ({"kp": 300.0}, "'kp' is per joint"),
        ({"kp": {"waist": -1.0}}, r"kp\[waist\] = -1.0 is outside"),
        ({"default_kp": float("nan")}, "must be a finite number"),
        ({"default_kp": True}, "must be a finite number"),
    ],
)
def test_what_the_schema_forbids_is_never_sent(
    pd: URLabPDController, server: Any, params: dict[str, Any], complaint: str
):
    with pytest.raises(ValueError, match=complaint):
        pd.configure(**params)
    assert "configure_controller" not in server.ops()


def test_views_follow_what_the_server_acknowledges(pd: URLabPDController, server: Any):
    kp = pd.kp
    assert kp == {"waist": 300.0, "elbow_joint": 280.0}
    server.replies["configure_controller"] = {"params": {"kp": {"waist": 320.0}, "default_kp": 1.0}}
    assert pd.set_gains(kp={"waist": 320.0})["default_kp"] == 1.0
    assert dict(kp) == {"waist": 320.0}
    sent = server.last("configure_controller")
    assert (sent["articulation"], sent["params"]) == ("arm", {"kp": {"waist": 320.0}})


def test_refresh_asks_with_an_empty_patch(pd: URLabPDController, server: Any):
    server.replies["configure_controller"] = {"params": {"default_kv": 2.0}}
    assert pd.refresh() == {"default_kv": 2.0}
    assert server.last("configure_controller")["params"] == {}


def test_without_a_client_a_patch_is_merged_here(pd: URLabPDController):
    pd._client = None
    assert pd.set_gains(kp={"waist": 500.0})["kp"] == {"waist": 500.0, "elbow_joint": 280.0}
    params = pd.set_defaults(kp=120.0, kv=7.0)
    assert (params["default_kp"], params["default_kv"], params["default_torque_limit"]) == (120.0, 7.0, 200.0)


def test_a_controller_without_a_schema_leaves_judgement_to_the_server():
    controller = URLabController("x", "future_kind", {"alpha": 1.0})
    assert controller.configure(alpha=2.5, beta="b") == {"alpha": 2.5, "beta": "b"}
