"""Values that callers give, judged before anything is sent."""

import numpy as np
import pytest

from urlab_client import checks


@pytest.mark.parametrize("value", [True, False, 1, 0, np.bool_(True), 1.0])
def test_what_is_true_or_false_is_a_switch(value: object) -> None:
    assert checks.switch("paused", value) is bool(value)


@pytest.mark.parametrize("value", ["no", "true", 2, None, [], float("nan")])
def test_what_is_neither_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="paused must be True or False, not"):
        checks.switch("paused", value)
