"""A small network that learns by example, in NumPy, and is written as ONNX: for the scripts that train policies."""

import itertools

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Network:
    """Layers of tanh, the last one linear, trained by Adam to the least squared error."""

    def __init__(self, rng, sizes):
        shapes = list(itertools.pairwise(sizes))
        self.weights = [rng.normal(0.0, np.sqrt(2.0 / a), (a, b)).astype(np.float32) for a, b in shapes]
        self.weights[-1] *= 0.1
        self.biases = [np.zeros(b, dtype=np.float32) for _, b in shapes]
        self._means = [np.zeros_like(one) for one in self.weights + self.biases]
        self._squares = [np.zeros_like(one) for one in self.weights + self.biases]
        self._steps = 0

    def __call__(self, seen):
        return self._layers(seen)[-1]

    def _layers(self, seen):
        layers = [seen]
        for weight, bias in zip(self.weights, self.biases, strict=True):
            out = layers[-1] @ weight + bias
            layers.append(out if len(layers) == len(self.weights) else np.tanh(out))
        return layers

    def fit(self, seen, wanted, rng, epochs, rate, size=512):
        """Learn the pairs; the mean squared error of the last epoch."""
        for _ in range(epochs):
            total, order = 0.0, rng.permutation(len(seen))
            batches = [order[at : at + size] for at in range(0, len(seen) - size + 1, size)]
            for chosen in batches:
                layers = self._layers(seen[chosen])
                error = layers[-1] - wanted[chosen]
                total += float(np.mean(error**2))
                self._descend(layers, error / size, rate)
        return total / len(batches)

    def _descend(self, layers, slope, rate):
        by_weight, by_bias = [], []
        for at in reversed(range(len(self.weights))):
            by_weight.append(layers[at].T @ slope)
            by_bias.append(slope.sum(0))
            slope = (slope @ self.weights[at].T) * (1.0 - layers[at] ** 2)
        self._steps += 1
        slopes = by_weight[::-1] + by_bias[::-1]
        for at, (numbers, one) in enumerate(zip(self.weights + self.biases, slopes, strict=True)):
            self._means[at] = 0.9 * self._means[at] + 0.1 * one
            self._squares[at] = 0.999 * self._squares[at] + 0.001 * one * one
            mean = self._means[at] / (1.0 - 0.9**self._steps)
            square = self._squares[at] / (1.0 - 0.999**self._steps)
            numbers -= np.float32(rate) * mean / (np.sqrt(square) + 1e-8)

    def save(self, path):
        """Write it as an ONNX file."""
        nodes, tensors, name = [], [], "observation"
        for at, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            last = at == len(self.weights) - 1
            out = "action" if last else f"layer{at}"
            tensors += [numpy_helper.from_array(weight, f"w{at}"), numpy_helper.from_array(bias, f"b{at}")]
            nodes.append(helper.make_node("Gemm", [name, f"w{at}", f"b{at}"], [out if last else f"sum{at}"]))
            if not last:
                nodes.append(helper.make_node("Tanh", [f"sum{at}"], [out]))
            name = out
        seen = helper.make_tensor_value_info("observation", TensorProto.FLOAT, [1, len(self.weights[0])])
        said = helper.make_tensor_value_info("action", TensorProto.FLOAT, [1, len(self.biases[-1])])
        graph = helper.make_graph(nodes, path.stem, [seen], [said], tensors)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
