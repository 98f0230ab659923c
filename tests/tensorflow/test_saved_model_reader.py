# SPDX-License-Identifier: Apache-2.0
"""SavedModels written by TensorFlow, as the importer reads them: the flat functions, put together again as a graph of
TensorFlow, must compute what the saved signature computes. Skipped where the dump program is missing."""

import itertools
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import op_def_registry, ops as framework_ops

ROOT = Path(__file__).parents[2]
PROGRAM = Path(os.environ.get("LEADLINE_SAVED_MODEL_DUMP", ROOT / "build/release/saved_model_dump"))
if not os.access(PROGRAM, os.X_OK):
    pytest.skip("saved_model_dump is not built", allow_module_level=True)
v1 = tf.compat.v1

STRING = tf.string.as_datatype_enum


def dump(directory, out, *signatures):
    """The model as model.json has it; its text form under "text"."""
    out.mkdir(exist_ok=True)
    run = subprocess.run(
        [PROGRAM, directory, out, *signatures], capture_output=True, text=True, check=False, timeout=60
    )
    assert run.returncode == 0, run.stderr
    return {**json.loads((out / "model.json").read_text()), "text": run.stdout, "out": out}


def constant_array(model, index):
    info = model["constants"][index]
    data = (model["out"] / f"constant_{index}").read_bytes()
    if info["dtype"] == STRING:
        offsets = np.frombuffer(data, "<i4", int(np.frombuffer(data, "<i4", 1)[0]) + 1, 4)
        strings = [data[a:b] for a, b in itertools.pairwise(offsets)]
        return np.array(strings, object).reshape(info["shape"])
    return np.frombuffer(data, tf.as_dtype(info["dtype"]).as_numpy_dtype).reshape(info["shape"])


def list_attr(value):
    attr = v1.AttrValue()
    attr.list.type.extend(value["types"])
    for dims in value["shapes"]:
        attr.list.shape.add().CopyFrom(tf.TensorShape(dims).as_proto())
    return attr


class Rebuilder:
    """Runs flat functions node by node with TensorFlow."""

    FUNCTIONS = {"While": ("cond", "body"), "If": ("then_branch", "else_branch")}
    VARIABLE_OPS = {"ResourceGather": tf.gather, "ResourceGatherNd": tf.gather_nd}

    def __init__(self, model):
        self.model = model
        self.constants = [constant_array(model, i) for i in range(len(model["constants"]))]

    def call(self, index, inputs):
        """The function's outputs for the tensors `inputs`, as operations added to the current graph."""
        function = self.model["functions"][index]
        assert len(inputs) == len(function["inputs"])
        made = []

        def value(ref):
            kind, number, output = ref
            if kind == "input":
                return inputs[number]
            if kind == "constant":
                return tf.constant(self.constants[number], dtype=tf.as_dtype(self.model["constants"][number]["dtype"]))
            return made[number][output]

        for node in function["nodes"]:
            outputs = self.node(node, [value(ref) for ref in node["inputs"]])
            assert len(outputs) == node["outputs"], node["name"]
            made.append(outputs)
        return [value(output["value"]) for output in function["outputs"]]

    def node(self, node, operands):
        op = node["op"]
        if op.removeprefix("Stateless") in ("While", "If", "Case"):
            return self.control_flow(op.removeprefix("Stateless"), node["functions"], operands)
        if op in self.VARIABLE_OPS:
            return [self.VARIABLE_OPS[op](*operands)]
        attrs = {}
        for name, value in node["attrs"].items():
            if not name.startswith("_"):
                attrs[name] = (
                    list_attr(value) if isinstance(value, dict) else v1.AttrValue.FromString(bytes.fromhex(value))
                )
        graph = v1.get_default_graph()
        definition = v1.NodeDef(name=graph.unique_name("node"), op=op, attr=self.with_defaults(op, attrs))
        made = framework_ops.Operation.from_node_def(definition, graph, [graph.capture(x) for x in operands])
        return list(made.outputs)

    @staticmethod
    def with_defaults(op, attrs):
        for attr in op_def_registry.get(op).attr:
            if attr.name not in attrs and attr.HasField("default_value"):
                attrs[attr.name] = attr.default_value
        return attrs

    def control_flow(self, op, functions, operands):
        if op == "While":
            result = tf.while_loop(
                lambda *state: tf.reshape(self.call(functions[0], state)[0], []),
                lambda *state: self.call(functions[1], state),
                operands,
                shape_invariants=[tf.TensorShape(None) if x.dtype != tf.variant else x.shape for x in operands],
            )
            return list(result)
        branches = [lambda f=f: self.call(f, operands[1:]) for f in functions]
        if op == "If":
            return list(tf.cond(tf.reshape(operands[0], []), *branches))
        return list(tf.switch_case(operands[0], branches))


def check(directory, tmp_path, *signatures, variables=None, inputs=None):
    """Compares every signature of the dump with TensorFlow's own; returns the dump."""
    model = dump(directory, tmp_path / "dump", *signatures)
    loaded = tf.saved_model.load(str(directory))
    rebuilder = Rebuilder(model)
    for key, index in model["signatures"].items():
        function = model["functions"][index]
        rng = np.random.default_rng(3)
        feeds = inputs or {
            i["name"]: rng.standard_normal([2 if d < 0 else d for d in i["shape"]]).astype(np.float32)
            for i in function["inputs"]
        }
        wanted = loaded.signatures[key](**{name: tf.constant(value) for name, value in feeds.items()})
        rebuilt = tf.function(lambda *given, index=index: rebuilder.call(index, given), autograph=False)
        got = rebuilt(*[tf.constant(feeds[i["name"]]) for i in function["inputs"]])
        assert [o["name"] for o in function["outputs"]] == sorted(wanted)
        for output, value in zip(function["outputs"], got, strict=True):
            expected = wanted[output["name"]].numpy()
            if expected.dtype == object:
                assert (value.numpy() == expected).all()
            else:
                np.testing.assert_allclose(value.numpy(), expected, rtol=1e-5, atol=1e-6, err_msg=output["name"])
    if variables is not None:
        stored = {c["name"]: rebuilder.constants[i] for i, c in enumerate(model["constants"]) if c["variable"]}
        assert len(stored) == len(variables)
        for array in variables:
            assert any(array.shape == s.shape and (array == s).all() for s in stored.values())
    return model


def test_module(tmp_path):
    class Module(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(tf.random.normal([4, 3]), name="w")
            self.b = tf.Variable(tf.random.normal([3]), name="b")
            # Equal names: only the objects distinguish these.
            self.deep = [tf.Variable(tf.random.normal([3, 3]), name="w"), {"k": tf.Variable(np.arange(5), name="k")}]
            self.bfloat = tf.Variable(tf.cast(tf.random.normal([3]), tf.bfloat16))
            self.half = tf.Variable(tf.cast(tf.random.normal([3]), tf.float16))

        @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")])
        def __call__(self, x):
            y = tf.nn.relu(x @ self.w + self.b)
            _, index = tf.math.top_k(y, 2)
            _, b, c = tf.split(y, 3, axis=1)
            picked = b + c + tf.cast(self.deep[1]["k"][2], tf.float32)
            tf.debugging.assert_less(tf.reduce_max(y), 1e9)
            small = tf.cast(self.bfloat, tf.float32) * tf.cast(self.half, tf.float32)
            return {"y": self.inner(y), "index": index, "picked": picked, "small": small}

        @tf.function
        def inner(self, y):
            return y @ self.deep[0] + tf.constant(np.random.default_rng(1).random((3, 3), np.float32))[0]

    module = Module()
    tf.saved_model.save(module, str(tmp_path / "m"))
    model = check(tmp_path / "m", tmp_path, variables=[v.numpy() for v in module.variables])
    operations = [n["op"] for n in model["functions"][0]["nodes"]]
    assert "Assert" not in operations
    assert operations.count("MatMul") == 2


def test_control_flow(tmp_path):
    class Module(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(tf.random.normal([4, 4]) * 0.3)
            self.n = tf.Variable(5)
            self.t = tf.Variable(tf.ones([2, 4]))

        @tf.function(input_signature=[tf.TensorSpec([2, 4], tf.float32, name="x")])
        def __call__(self, x):
            big = tf.constant(np.random.default_rng(2).random((4, 4), np.float32))
            i, y = tf.while_loop(lambda i, _: i < self.n, lambda i, y: (i + 1, tf.tanh(y @ self.w + y @ big)), [0, x])
            z = tf.cond(tf.reduce_sum(y) > 0, lambda: y @ self.w, lambda: y - self.t)
            q = tf.switch_case(tf.shape(x)[0] % 3, [lambda: z + 1.0, lambda: z * 2.0, lambda: z @ big])
            # A variable's value as the start of a loop, and a branch in a loop that reads a variable.
            start = tf.while_loop(lambda j, _: j < 2, lambda j, a: (j + 1, a * 2.0), [0, self.w.read_value()])[1]
            nested = tf.while_loop(
                lambda j, _: j < 2,
                lambda j, a: (j + 1, tf.cond(a[0, 0] > 0, lambda: a @ self.w, lambda: a + tf.gather(self.w, [0]))),
                [0, q],
            )[1]
            return {"z": z, "i": i, "q": nested, "start": start}

    module = Module()
    tf.saved_model.save(module, str(tmp_path / "m"))
    check(tmp_path / "m", tmp_path, variables=[v.numpy() for v in module.variables])


def test_keras_3_export(tmp_path):
    keras = pytest.importorskip("keras")
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((8, 8, 3)),
            layers.Conv2D(4, 3),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.Flatten(),
            layers.Dropout(0.5),
            layers.Dense(5),
        ]
    )
    model.export(str(tmp_path / "m"), verbose=False)
    read = check(tmp_path / "m", tmp_path, variables=[w.numpy() for w in model.weights if "seed" not in w.path])
    assert list(read["signatures"]) == ["serving_default"]


@pytest.mark.parametrize("package", ["keras", "tf_keras"])
def test_recurrent_layers(tmp_path, package):
    keras = pytest.importorskip(package)
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((6, 4)),
            layers.LSTM(8, return_sequences=True),
            layers.Bidirectional(layers.GRU(3)),
            layers.Dense(2, activation="softmax"),
        ]
    )
    if package == "keras":
        model.export(str(tmp_path / "m"), verbose=False)
    else:
        tf.saved_model.save(model, str(tmp_path / "m"))
    read = check(tmp_path / "m", tmp_path, variables=[w.numpy() for w in model.weights])
    assert sum(n["op"] in ("While", "StatelessWhile") for n in read["functions"][0]["nodes"]) == 3


@pytest.mark.parametrize("parts", [None, 0, 1])
@pytest.mark.parametrize("resource", [False, True])
def test_graph_of_tensorflow_1(tmp_path, resource, parts):
    split = None if parts is None else v1.fixed_size_partitioner(2, axis=parts)
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 4], name="x")
        w = v1.get_variable("w", [4, 200], use_resource=resource, partitioner=split)
        b = v1.get_variable("b", [200], use_resource=resource)
        words = v1.get_variable("words", initializer=tf.constant(["abc", "", "xy" * 100]), use_resource=resource)
        y = tf.nn.softmax(tf.matmul(x, tf.convert_to_tensor(w)) + b, name="y")
        session.run(v1.global_variables_initializer())
        outputs = {"y": y, "e": tf.gather(b, [1, 2]), "words": tf.identity(words)}
        v1.saved_model.simple_save(session, str(tmp_path / "m"), {"x": x}, outputs)
    check(tmp_path / "m", tmp_path)


def test_ways_to_change_variables_without_a_conversion_are_refused(tmp_path):
    class Counter(tf.Module):
        def __init__(self):
            super().__init__()
            self.n = tf.Variable([0.0])

        @tf.function(input_signature=[tf.TensorSpec([4], tf.float32)])
        def __call__(self, x):
            self.n.scatter_mul(tf.IndexedSlices([x[0]], [0]))
            return x + self.n

    tf.saved_model.save(Counter(), str(tmp_path / "m"))
    run = subprocess.run([PROGRAM, tmp_path / "m", tmp_path], capture_output=True, text=True, check=False, timeout=60)
    assert run.returncode == 1
    assert "in a way that has no conversion" in run.stderr
