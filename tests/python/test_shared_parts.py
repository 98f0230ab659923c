# SPDX-License-Identifier: Apache-2.0
"""Tensors that live inside others: inputs of joins, and parts that are cut from tensors.

Random graphs of joins, cuts, views and ops that compute in place are run and compared with numpy. All their arithmetic is
exact, so every bit counts. The plan must say what the run takes, and nothing may change with memory of the caller.
"""

import numpy as np
import pytest

import leadline
from leadline import lite

GRAPHS = 150


class Graph:
    """A model and, for a given input, what numpy says each of its tensors is."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.builder = leadline.ModelBuilder()
        self.dtype = [np.float32, np.int8, np.int32][seed % 3]
        self.quantization = {"scales": 0.5, "zero_points": 3} if self.dtype is np.int8 else {}
        self.feeds = []
        self.values: list[tuple[int, np.ndarray]] = []
        for i in range(int(self.rng.integers(1, 3))):
            value = self.rng.integers(-40, 40, (int(self.rng.integers(1, 7)), 8)).astype(self.dtype)
            self.feeds.append(value)
            self.values.append((self.builder.input(f"x{i}", self.dtype, value.shape, **self.quantization), value))
        self.indices: list[tuple[int, np.ndarray]] = []
        if seed % 4 == 1:  # a number that only a run knows: shapes after it depend on data
            for i, bound in enumerate((0, 1)):
                value = np.array([bound, 0], np.int32)
                self.feeds.append(value)
                self.indices.append((self.builder.input(f"begin{i}", np.int32, (2,)), value))
        for _ in range(int(self.rng.integers(4, 14))):
            self.step()
        self.finish()

    def pick(self):
        # Newer ones more often: long chains.
        place = int(len(self.values) * self.rng.random() ** 0.5)
        return self.values[place]

    def constant(self, value) -> int:
        return self.builder.constant(f"c{len(self.values)}.{self.rng.integers(1 << 40)}", np.asarray(value, np.int32))

    def add(self, op: str, inputs: list[int], results: list[np.ndarray], **attributes) -> None:
        name = f"v{len(self.values)}"
        outputs = [
            self.builder.tensor(f"{name}.{i}", self.dtype, value.shape, **self.quantization)
            for i, value in enumerate(results)
        ]
        self.builder.node(op, inputs, outputs, **attributes)
        self.values += zip(outputs, results, strict=True)

    def step(self) -> None:
        kinds = [self.join, self.join, self.pack, self.split, self.unpack, self.slice, self.strided, self.view]
        kinds += [self.elementwise] * 4 + [self.run_time_slice] * bool(self.indices)
        self.rng.choice(kinds)()

    def elementwise(self) -> None:
        index, value = self.pick()
        same = [pair for pair in self.values if pair[1].shape == value.shape]
        other, second = same[int(self.rng.integers(len(same)))]
        if self.rng.random() < 0.4 and self.dtype is not np.int8:
            negated = self.dtype is np.int32
            self.add("NEG" if negated else "ABS", [index], [-value if negated else np.abs(value)])
            return
        larger = self.rng.random() < 0.5
        result = np.maximum(value, second) if larger else np.minimum(value, second)
        self.add("MAXIMUM" if larger else "MINIMUM", [index, other], [result])

    def join(self) -> None:
        _, first = self.pick()
        fitting = [pair for pair in self.values if pair[1].shape[1:] == first.shape[1:]]
        chosen = [fitting[int(i)] for i in self.rng.integers(len(fitting), size=int(self.rng.integers(2, 5)))]
        result = np.concatenate([value for _, value in chosen])
        if len(result) < 60:
            self.add("CONCATENATION", [index for index, _ in chosen], [result], axis=0)

    def pack(self) -> None:
        _, first = self.pick()
        fitting = [pair for pair in self.values if pair[1].shape == first.shape]
        chosen = [fitting[int(i)] for i in self.rng.integers(len(fitting), size=2)]
        if first.ndim < 4 and len(first) < 30:
            stacked = np.stack([value for _, value in chosen])
            self.add("PACK", [index for index, _ in chosen], [stacked], axis=0, values_count=2)

    def split(self) -> None:
        index, value = self.pick()
        for count in (3, 2, 1):
            if len(value) % count == 0:
                self.add("SPLIT", [self.constant(0), index], np.split(value, count), num_splits=count)
                return

    def unpack(self) -> None:
        index, value = self.pick()
        if value.ndim > 1 and 0 < len(value) < 5:
            self.add("UNPACK", [index], [*value], num=len(value), axis=0)

    def slice(self) -> None:
        index, value = self.pick()
        begin = int(self.rng.integers(len(value)))
        size = int(self.rng.integers(1, len(value) - begin + 1))
        begins, sizes = np.zeros(value.ndim, int), np.array(value.shape)
        begins[0], sizes[0] = begin, size
        self.add("SLICE", [index, self.constant(begins), self.constant(sizes)], [value[begin : begin + size]])

    def strided(self) -> None:
        index, value = self.pick()
        begin, step = int(self.rng.integers(len(value))), int(self.rng.integers(1, 3))
        bounds = [[begin], [len(value)], [step]]
        self.add("STRIDED_SLICE", [index, *map(self.constant, bounds)], [value[begin::step]])

    def run_time_slice(self) -> None:
        index, value = self.pick()
        if value.ndim != 2 or len(value) < 2:
            return
        place, begins = self.indices[int(self.rng.integers(2))]
        sizes = [-1, -1]
        self.add("SLICE", [index, place, self.constant(sizes)], [value[begins[0] :, begins[1] :]])

    def view(self) -> None:
        index, value = self.pick()
        shape = (value.size // 4, 4) if value.size % 4 == 0 and self.rng.random() < 0.5 else (1, value.size)
        self.add("RESHAPE", [index, self.constant(shape)], [value.reshape(shape)])

    def finish(self) -> None:
        count = min(len(self.values), int(self.rng.integers(1, 4)))
        computed = self.values[len(self.feeds) - len(self.indices) :] or self.values
        chosen = {len(computed) - 1, *map(int, self.rng.integers(len(computed), size=count))}
        self.outputs = [computed[i] for i in sorted(chosen)]
        self.builder.output(*[index for index, _ in self.outputs])
        self.model = self.builder.to_tflite()


def run(graph: Graph, **options):
    interpreter = lite.Interpreter(model_content=graph.model, **options)
    interpreter.allocate_tensors()
    for details, value in zip(interpreter.get_input_details(), graph.feeds, strict=True):
        interpreter.set_tensor(details["index"], value)
    return interpreter


def expect(graph: Graph, interpreter, note: str) -> None:
    for details, (_, wanted) in zip(interpreter.get_output_details(), graph.outputs, strict=True):
        got = interpreter.get_tensor(details["index"])
        np.testing.assert_array_equal(got, wanted, err_msg=f"{details['name']} {note}")


@pytest.mark.parametrize("first", range(0, GRAPHS, 10))
def test_random_graphs_of_joins_and_cuts_compute_what_numpy_does(first):
    for seed in range(first, first + 10):
        graph = Graph(seed)
        for options in ({}, {"num_threads": 3}, {"experimental_preserve_all_tensors": True}):
            interpreter = run(graph, **options)
            for turn in range(2):  # what a run leaves in shared memory must not matter to the next
                interpreter.invoke()
                expect(graph, interpreter, f"seed {seed} {options} turn {turn}")
            plan = interpreter.plan()
            assert plan.peak_bytes == interpreter.counted_peak_bytes(), f"seed {seed} {options}"


def test_bound_outputs_hold_the_same():
    bound = 0
    for seed in range(0, GRAPHS, 3):
        graph = Graph(seed)
        interpreter = run(graph)
        results = []
        for details, (_, wanted) in zip(interpreter.get_output_details(), graph.outputs, strict=True):
            results.append(np.zeros(wanted.shape, wanted.dtype))
            interpreter.bind_tensor(details["index"], results[-1])
            bound += 1
        for details, value in zip(interpreter.get_input_details(), graph.feeds, strict=True):
            interpreter.set_tensor(details["index"], value)
        interpreter.invoke()
        for result, (_, wanted) in zip(results, graph.outputs, strict=True):
            np.testing.assert_array_equal(result, wanted, err_msg=f"seed {seed}")
    assert bound > 50


def test_most_joins_and_cuts_of_these_graphs_share_memory():
    """The graphs above are worth something only if memory is shared in them."""
    inside = 0
    for seed in range(GRAPHS):
        plan = run(Graph(seed)).plan()
        owners = {tensor.index: tensor for tensor in plan.tensors}
        for tensor in plan.tensors:
            inside += tensor.shares_with >= 0 and owners[tensor.shares_with].bytes > tensor.bytes
    assert inside > GRAPHS
