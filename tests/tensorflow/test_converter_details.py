# SPDX-License-Identifier: Apache-2.0
"""Files as TensorFlow's converter makes them: what they say of their making, names and order of tensors, signatures
that are quantized one by one, and the switches that scripts set."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import leadline
from leadline import lite
from leadline.lite.convert import ConverterError


class Two(tf.Module):
    """Two functions that share their weights."""

    def __init__(self):
        super().__init__()
        self.weights = tf.Variable(tf.random.stateless_normal([32, 64], [1, 2]))

    @tf.function(input_signature=[tf.TensorSpec([1, 32], name="x")])
    def encode(self, x):
        return {"code": tf.nn.relu(tf.matmul(x, self.weights, name="product"))}

    @tf.function(input_signature=[tf.TensorSpec([1, 64], name="zz"), tf.TensorSpec([1, 32], name="aa")])
    def decode(self, first, second):
        back = tf.matmul(first, self.weights, transpose_b=True)
        return {"far": back - second, "near": back + second}

    def functions(self):
        return [self.encode.get_concrete_function(), self.decode.get_concrete_function()]


def names(content, what="inputs"):
    interpreter = lite.Interpreter(model_content=content)
    details = {"inputs": interpreter.get_input_details, "outputs": interpreter.get_output_details}
    return [detail["name"] for detail in details.get(what, interpreter.get_tensor_details)()]


def samples(key=None):
    for number in range(8):
        for name, sizes in {"encode": {"x": 32}, "decode": {"zz": 64, "aa": 32}}.items():
            random = np.random.default_rng([number, len(sizes)])
            sample = {name: random.normal(size=(1, size)).astype(np.float32) for name, size in sizes.items()}
            if key in (None, name):
                yield name, sample


INTEGERS = {
    "int8": lite.OpsSet.TFLITE_BUILTINS_INT8,
    "int16": lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8,
}


@pytest.mark.parametrize("border", ["float32", "integer", "uint8"])
@pytest.mark.parametrize("integers", ["int8", "int16"])
def test_all_signatures_are_quantized(integers, border, litert):
    if (integers, border) == ("int16", "uint8"):
        pytest.skip("int16 activations go with int16 inputs")
    module = Two()
    converter = lite.TFLiteConverter.from_concrete_functions(module.functions(), module)
    converter.optimizations = [lite.Optimize.DEFAULT]
    converter.representative_dataset = samples
    converter.target_spec.supported_ops = [INTEGERS[integers]]
    dtype = integers if border == "integer" else border
    converter.inference_input_type = converter.inference_output_type = getattr(tf, dtype)
    content = converter.convert()
    model = leadline.Model.from_bytes(content)
    for subgraph in (0, 1):
        ops = [node.op for node in model.subgraph(subgraph).nodes]
        assert "FULLY_CONNECTED" in ops or "BATCH_MATMUL" in ops
        graph = model.subgraph(subgraph)
        assert {graph.tensors[index].dtype.name.lower() for index in (*graph.inputs, *graph.outputs)} == {dtype}
    for key in ("encode", "decode"):
        worst = 0.0
        for _, sample in samples(key):
            expected = getattr(module, key)(*sample.values())
            for interpreter in (lite.Interpreter, litert):
                runner = interpreter(model_content=content).get_signature_runner(key)
                got = runner(**{name: integer(sample[name], d) for name, d in runner.get_input_details().items()})
                for name, detail in runner.get_output_details().items():
                    error = np.abs(real(got[name], detail) - expected[name]).max() / np.abs(expected[name]).max()
                    worst = max(worst, error)
        assert worst < (0.04 if integers == "int8" else 0.02)


def integer(values, detail):
    scale, zero_point = detail["quantization"]
    if scale == 0:
        return values
    limits = np.iinfo(detail["dtype"])
    return np.clip(np.round(values / scale + zero_point), limits.min, limits.max).astype(detail["dtype"])


def real(values, detail):
    scale, zero_point = detail["quantization"]
    return values if scale == 0 else (values.astype(np.float32) - zero_point) * scale


def test_weights_that_signatures_share_are_in_the_file_once(tmp_path):
    class Shared(tf.Module):
        def __init__(self):
            super().__init__()
            self.weights = tf.Variable(tf.random.stateless_normal([128, 128], [1, 2]))

        @tf.function(input_signature=[tf.TensorSpec([1, 128], name="x")])
        def one(self, x):
            return x @ self.weights

        @tf.function(input_signature=[tf.TensorSpec([1, 128], name="x")])
        def two(self, x):
            return tf.nn.relu(x @ self.weights)

    module = Shared()
    tf.saved_model.save(module, str(tmp_path), signatures={"one": module.one, "two": module.two})
    converter = lite.TFLiteConverter.from_saved_model(tmp_path)
    converter.optimizations = [lite.Optimize.DEFAULT]
    x = np.random.default_rng(3).normal(size=(4, 1, 128)).astype(np.float32)
    converter.representative_dataset = lambda: [(key, {"x": row}) for row in x for key in ("one", "two")]
    assert len(converter.convert()) < 128 * 128 + 6000


def test_a_signature_without_samples_stays_float_or_is_named():
    module = Two()
    converter = lite.TFLiteConverter.from_concrete_functions(module.functions(), module)
    converter.optimizations = [lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: samples("encode")
    model = leadline.Model.from_bytes(converter.convert())
    assert "QUANTIZE" in [node.op for node in model.subgraph(0).nodes]
    assert "QUANTIZE" not in [node.op for node in model.subgraph(1).nodes]
    converter.target_spec.supported_ops = [INTEGERS["int8"]]
    with pytest.raises(leadline.UnsupportedError, match="subgraph 1: .*no usable range"):
        converter.convert()


def test_names_are_those_of_tensorflow():
    module = Two()
    peers = tf.lite.TFLiteConverter
    for function, held in [(module.functions()[0], module), (module.functions()[1], module)]:
        content = lite.TFLiteConverter.from_concrete_functions([function], held).convert()
        expected = peers.from_concrete_functions([function], held).convert()
        # TensorFlow's order of several inputs is that of a hash table.
        for what in ("inputs", "outputs"):
            assert sorted(names(content, what)) == sorted(names(expected, what))
    for key in ("encode", "decode"):
        found = []
        for converter in (lite.TFLiteConverter, peers):
            content = converter.from_concrete_functions(module.functions(), module).convert()
            details = lite.Interpreter(model_content=content).get_signature_runner(key).get_output_details()
            found.append({name: detail["name"] for name, detail in details.items()})
        assert found[0] == found[1]


@pytest.mark.parametrize("held", [None, "a tf.function", "an object without the variables"])
def test_functions_without_their_object_have_plain_names_in_their_own_order(held):
    module = Two()
    trackable = {None: None, "a tf.function": module.decode}.get(held, tf.Module())
    function = module.decode.get_concrete_function()
    content = lite.TFLiteConverter.from_concrete_functions([function], trackable).convert()
    expected = tf.lite.TFLiteConverter.from_concrete_functions([function], trackable).convert()
    for what in ("inputs", "outputs"):
        assert names(content, what) == names(expected, what)
    assert names(content) == ["zz", "aa"]
    assert lite.Interpreter(model_content=content).get_signature_list() == {}
    interpreter = lite.Interpreter(model_content=content)
    interpreter.allocate_tensors()
    arguments = [np.ones((1, 64), np.float32), np.full((1, 32), 2, np.float32)]
    for detail, value in zip(interpreter.get_input_details(), arguments, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    expected = module.decode(*arguments)
    for detail, name in zip(interpreter.get_output_details(), ("far", "near"), strict=True):
        np.testing.assert_allclose(interpreter.get_tensor(detail["index"]), expected[name], rtol=1e-4, atol=1e-4)


def test_lowering_without_a_saved_model_gives_plain_names_too():
    module = Two()
    converter = lite.TFLiteConverter([module.encode.get_concrete_function()], module)
    assert names(converter.convert()) == ["serving_default_x:0"]
    converter.experimental_lower_to_saved_model = False
    content = converter.convert()
    assert (names(content), names(content, "outputs")) == (["x"], ["Identity"])


def record(content):
    return leadline.Model.from_bytes(content).conversion_record


def test_files_say_how_they_were_made(tmp_path):
    from tensorflow.lite.python import conversion_metadata_schema_py_generated as schema
    from tensorflow.lite.python.util import get_conversion_metadata

    module = Two()
    function = module.encode.get_concrete_function()
    tf.saved_model.save(module, str(tmp_path), signatures={"encode": module.encode})
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    kinds = {
        "concrete_functions": (lite.TFLiteConverter.from_concrete_functions([function], module), 3),
        "saved_model": (lite.TFLiteConverter.from_saved_model(tmp_path), 1),
        "keras_model": (lite.TFLiteConverter.from_keras_model(model), 2),
    }
    for name, (converter, number) in kinds.items():
        content = converter.convert()
        assert record(content) == {
            "tensorflow_version": tf.__version__,
            "api_version": 2,
            "source": name,
            "optimizations": [],
            "allow_custom_ops": False,
            "select_tf_ops": False,
            "only_select_tf_ops": False,
        }
        seen = get_conversion_metadata(content)  # as TensorFlow reads it
        assert seen.environment.modelType == number
        assert seen.environment.tensorflowVersion.decode() == tf.__version__
        converter.allow_custom_ops = True
        converter.target_spec.supported_ops = [lite.OpsSet.TFLITE_BUILTINS, lite.OpsSet.SELECT_TF_OPS]
        seen = get_conversion_metadata(converter.convert())
        assert seen.options.allowCustomOps and seen.options.enableSelectTfOps
        converter.exclude_conversion_metadata = True
        assert record(converter.convert()) is None
    assert schema.ModelType.KERAS_MODEL == 2


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("int8", "full_integer"), ("int16x8", "int16"), ("dynamic", "dynamic_range"), ("float16", "float16")],
)
def test_quantizing_is_noted_in_files_of_either_converter(mode, expected):
    module = Two()
    function = module.encode.get_concrete_function()
    for converter in (lite.TFLiteConverter, tf.lite.TFLiteConverter):
        content = converter.from_concrete_functions([function], module).convert()
        data = [sample["x"] for _, sample in samples("encode")]
        quantized = leadline.quantize(content, mode, [[x] for x in data] if "int" in mode else None)
        assert record(quantized)["optimizations"] == [expected]
        others = {name for name in leadline.Model.from_bytes(content).metadata if name != "CONVERSION_METADATA"}
        assert others <= set(leadline.Model.from_bytes(quantized).metadata)  # what is not known stays


def test_calibrate_only_leaves_ranges_for_tensorflows_quantizer():
    from tensorflow.lite.python.convert import mlir_quantize

    module = Two()
    converter = lite.TFLiteConverter.from_concrete_functions([module.encode.get_concrete_function()], module)
    converter.optimizations = [lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([sample["x"]] for _, sample in samples("encode"))
    converter._experimental_calibrate_only = True
    calibrated = converter.convert()
    assert {detail["dtype"] for detail in lite.Interpreter(model_content=calibrated).get_tensor_details()} == {
        np.float32
    }
    quantized = mlir_quantize(calibrated)
    details = tf.lite.Interpreter(model_content=quantized).get_tensor_details()
    assert np.int8 in {detail["dtype"] for detail in details}
    kept = mlir_quantize(calibrated, denylisted_nodes={"StatefulPartitionedCall:0"})
    details = tf.lite.Interpreter(model_content=kept).get_tensor_details()
    assert {detail["dtype"] for detail in details} == {np.float32}


@pytest.mark.parametrize("canonical", [False, True])
def test_infinite_constants(canonical):
    @tf.function(input_signature=[tf.TensorSpec([4], name="x")])
    def masked(x):
        return tf.where(x > 0.0, x, -np.inf), tf.constant([np.inf, -np.inf, 1.0, np.nan])

    converter = lite.TFLiteConverter.from_concrete_functions([masked.get_concrete_function()])
    converter.canonicalizing_inf_as_min_max_float = canonical
    interpreter = lite.Interpreter(model_content=converter.convert())
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.array([1, -1, 2, -2], np.float32))
    interpreter.invoke()
    first, second = (interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details())
    most = np.finfo(np.float32).max if canonical else np.inf
    np.testing.assert_array_equal(first, np.array([1, -most, 2, -most], np.float32))
    np.testing.assert_array_equal(second, np.array([most, -most, 1, np.nan], np.float32))


def small_converter():
    @tf.function(input_signature=[tf.TensorSpec([3], name="x")])
    def double(x):
        return 2.0 * x

    return lite.TFLiteConverter.from_concrete_functions([double.get_concrete_function()])


@pytest.mark.parametrize(
    ("name", "value"),
    [("serialize_debug_metadata", True), ("_experimental_preserve_assert_op", True), ("print_ir_after", "all")],
)
def test_switches_without_effect_are_named(name, value):
    converter = small_converter()
    setattr(converter, name, value)
    with pytest.warns(UserWarning, match=f"{name} has no effect here"):
        converter.convert()


def test_switches_of_tensorflows_converter_are_known(recwarn):
    converter = small_converter()
    peer = tf.lite.TFLiteConverter.from_keras_model(keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)]))
    hidden = {"_funcs", "_trackable_obj", "_metadata", "_collected_converter_params", "_tflite_metrics"}
    for name, value in vars(peer).items():
        if name in hidden or name.startswith(("_saved_model", "_keras")):
            continue
        assert hasattr(converter, name), name
        if name != "_debug_info" and (value is None or isinstance(value, (bool, str))):
            setattr(converter, name, value)
    converter.canonicalizing_inf_as_min_max_float = False
    assert converter.convert()
    assert not recwarn.list


def test_errors_that_programs_look_for(tmp_path):
    converter = small_converter()
    converter._experimental_qdq_conversion_mode = "UNKNOWN"
    with pytest.raises(ConverterError, match="Unknown QDQ conversion mode:"):
        converter.convert()
    converter = small_converter()
    converter._experimental_variable_quantization = True
    with pytest.raises(ValueError, match="`_experimental_variable_quantization` is only supported for full"):
        converter.convert()
    converter = small_converter()
    converter.experimental_use_stablehlo_quantizer = True
    with pytest.raises(ValueError, match="only supports static-range and weight-only PTQ"):
        converter.convert()
    with pytest.raises(ValueError, match="call get_concrete_function"):
        lite.TFLiteConverter.from_concrete_functions([Two().encode])
    module = Two()
    tf.saved_model.save(module, str(tmp_path / "a"), signatures={"encode": module.encode})
    with pytest.raises(ValueError, match="Invalid signature key 'INVALID'"):
        lite.TFLiteConverter.from_saved_model(tmp_path / "a", ["INVALID"])
    module = tf.Module()
    module.double = tf.function(lambda x: 2 * x)
    tf.saved_model.save(module, str(tmp_path / "b"))
    with pytest.raises(ValueError, match="Only support at least one signature key"):
        lite.TFLiteConverter.from_saved_model(tmp_path / "b")


def test_samples_may_have_one_dimension_more(tmp_path):
    module = tf.Module()
    module.scale = tf.function(lambda x: 3.0 * x, input_signature=[tf.TensorSpec([2], name="x")])
    tf.saved_model.save(module, str(tmp_path), signatures={"scale": module.scale})
    converter = lite.TFLiteConverter.from_saved_model(tmp_path)
    converter.optimizations = [lite.Optimize.DEFAULT]
    converter.target_spec.supported_ops = [INTEGERS["int8"]]
    converter.representative_dataset = lambda: [{"x": np.array([[i, -i]], np.float32)} for i in range(5)]
    runner = lite.Interpreter(model_content=converter.convert()).get_signature_runner()
    (got,) = runner(x=np.array([2, -1], np.float32)).values()
    np.testing.assert_allclose(got, [6, -3], atol=0.1)
    converter.representative_dataset = lambda: [{"x": np.zeros((2, 2), np.float32)}]
    with pytest.raises(leadline.InvalidArgumentError, match=r"the shape is \[2, 2\], the model takes \[2\]"):
        converter.convert()


def test_debug_information_of_tensorflow(tmp_path):
    module = Two()
    converter = lite.TFLiteConverter.from_concrete_functions([module.encode.get_concrete_function()], module)
    assert any(name.endswith("test_converter_details.py") for name in converter._debug_info.files)
    options = tf.saved_model.SaveOptions(save_debug_info=True)
    tf.saved_model.save(module, str(tmp_path / "with"), signatures={"encode": module.encode}, options=options)
    tf.saved_model.save(module, str(tmp_path / "without"), signatures={"encode": module.encode})
    with_it = lite.TFLiteConverter.from_saved_model(tmp_path / "with")
    assert any(name.endswith("test_converter_details.py") for name in with_it._debug_info.files)
    assert lite.TFLiteConverter.from_saved_model(tmp_path / "without")._debug_info is None


@pytest.mark.parametrize("turned", [False, True])
def test_products_of_int8_matrices_are_sums_of_int32(turned, litert):
    @tf.function(input_signature=[tf.TensorSpec([2, 4, 5], tf.int8, "a"), tf.TensorSpec([2, 5, 3], tf.int8, "b")])
    def product(a, b):
        b = tf.transpose(b, [0, 2, 1]) if turned else b
        return tf.matmul(a, b, transpose_b=turned, output_type=tf.int32)

    content = lite.TFLiteConverter.from_concrete_functions([product.get_concrete_function()]).convert()
    random = np.random.default_rng(4)
    arguments = [random.integers(-128, 128, shape).astype(np.int8) for shape in ((2, 4, 5), (2, 5, 3))]
    for interpreter in (lite.Interpreter, litert):
        made = interpreter(model_content=content)
        made.allocate_tensors()
        for detail, value in zip(made.get_input_details(), arguments, strict=True):
            made.set_tensor(detail["index"], value)
        made.invoke()
        got = made.get_tensor(made.get_output_details()[0]["index"])
        np.testing.assert_array_equal(got, arguments[0].astype(np.int32) @ arguments[1].astype(np.int32))


def test_sparse_weights():
    class Sparse(tf.Module):
        def __init__(self, values):
            super().__init__()
            self.weights = tf.constant(values, tf.float32)

        @tf.function(input_signature=[tf.TensorSpec([2, 64], name="x")])
        def __call__(self, x):
            return x @ self.weights

    random = np.random.default_rng(6)
    values = random.normal(size=(64, 32))
    forms = {
        "random_sparsity": values * (random.random((64, 32)) < 0.1),
        "block_sparsity": values * (np.arange(32) % 4 == 0),
    }
    x = random.normal(size=(2, 64)).astype(np.float32)
    for expected, weights in forms.items():
        module = Sparse(weights)
        converter = lite.TFLiteConverter.from_concrete_functions([module.__call__.get_concrete_function()], module)
        dense = converter.convert()
        converter.optimizations = [lite.Optimize.EXPERIMENTAL_SPARSITY]
        content = converter.convert()
        assert len(content) < len(dense)
        assert record(content)["optimizations"] == [expected]
        (got,) = lite.Interpreter(model_content=content).get_signature_runner()(x=x).values()
        np.testing.assert_allclose(got, x @ weights.astype(np.float32), rtol=1e-4, atol=1e-4)


def test_half_pixel_centers_have_their_version():
    from tensorflow.lite.python import schema_py_generated

    @tf.function(input_signature=[tf.TensorSpec([1, 5, 5, 1], name="x")])
    def resize(x):
        return tf.compat.v1.image.resize_bilinear(x, [2, 2], half_pixel_centers=True)

    content = lite.TFLiteConverter.from_concrete_functions([resize.get_concrete_function()]).convert()
    model = schema_py_generated.Model.GetRootAsModel(content, 0)
    codes = [model.OperatorCodes(i) for i in range(model.OperatorCodesLength())]
    resize_bilinear = schema_py_generated.BuiltinOperator.RESIZE_BILINEAR
    assert [code.Version() for code in codes if code.BuiltinCode() == resize_bilinear] == [3]


def test_large_constants_of_one_value_unfold(litert):
    weights = tf.ones([200, 200])

    @tf.function(input_signature=[tf.TensorSpec([200, 200], name="x")])
    def add(x):
        return (x + tf.constant(2.5, shape=[200, 200])) @ weights

    converter = lite.TFLiteConverter.from_concrete_functions([add.get_concrete_function()])
    plain = converter.convert()
    converter._experimental_unfold_large_splat_constant = True
    content = converter.convert()
    assert len(content) < len(plain) - 4 * 200 * 200 + 1000
    ops = [node.op for node in leadline.Model.from_bytes(content).subgraph(0).nodes]
    assert ops[0] == "FILL"
    assert ops.count("FILL") == 1  # weights stay constants
    x = np.random.default_rng(8).normal(size=(200, 200)).astype(np.float32)
    for interpreter in (lite.Interpreter, litert):
        made = interpreter(model_content=content)
        made.allocate_tensors()
        made.set_tensor(made.get_input_details()[0]["index"], x)
        made.invoke()
        got = made.get_tensor(made.get_output_details()[0]["index"])
        np.testing.assert_allclose(got, (x + 2.5) @ np.ones((200, 200), np.float32), rtol=1e-3, atol=1e-2)


def test_nested_results_in_a_dict_keep_their_order():
    @tf.function(input_signature=[tf.TensorSpec([2], tf.float32)])
    def many(x):
        return {"a": [x + float(i) for i in range(12)], "b": x * 100.0}

    content = lite.TFLiteConverter.from_concrete_functions([many.get_concrete_function()]).convert()
    interpreter = lite.Interpreter(model_content=content)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.array([1, 2], np.float32))
    interpreter.invoke()
    first = [interpreter.get_tensor(detail["index"])[0] for detail in interpreter.get_output_details()]
    assert first == [*[1.0 + i for i in range(12)], 100.0]
