"""ONNX networks: numbers in, numbers out."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from urlab.policies.policy_file import PolicyFileError

Array = NDArray[np.float64]


class OnnxNetwork:
    """A network with one input (1, n) or (n,) and one output of numbers.

    It runs on one thread: a policy's network is small, and the simulation wants the other cores.
    """

    def __init__(self, path: Path) -> None:
        try:
            import onnxruntime
        except ImportError:
            raise PolicyFileError("running a policy needs ONNX Runtime: pip install 'urlab-headless[policy]'") from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as failed:  # its classes share no base but this
            raise PolicyFileError(f"{path}: is no ONNX network that can be run: {failed}") from failed
        inputs, outputs = self._session.get_inputs(), self._session.get_outputs()
        if len(inputs) != 1 or len(outputs) != 1:
            raise PolicyFileError(
                f"{path}: has {len(inputs)} inputs and {len(outputs)} outputs; a policy has one of each: the "
                "observation and the action"
            )
        self._path = path
        self._input, self._output = inputs[0].name, outputs[0].name
        self._has_batch_axis = len(inputs[0].shape) == 2
        self._type = np.float64 if inputs[0].type == "tensor(double)" else np.float32
        width: Any = inputs[0].shape[-1] if inputs[0].shape else None
        self.inputs: int | None = width if isinstance(width, int) else None
        """How many numbers it takes; None if the file leaves it open."""

    def __call__(self, observation: Array) -> Array:
        """The action for an observation, both (n,)."""
        given = observation.astype(self._type)
        given = given[np.newaxis] if self._has_batch_axis else given
        try:
            (action,) = self._session.run([self._output], {self._input: given})
        except Exception as failed:  # as above
            raise PolicyFileError(f"{self._path}: {failed}") from failed
        return np.asarray(action, dtype=np.float64).reshape(-1)
