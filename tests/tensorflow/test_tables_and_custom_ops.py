# SPDX-License-Identifier: Apache-2.0
"""SavedModels with lookup tables, and with ops that become custom ops."""

import subprocess

import numpy as np
import pytest
import tensorflow as tf
from ai_edge_litert import schema_py_generated as schema
from flatbuffers import flexbuffers
from test_cli import PROGRAM

import leadline
from leadline import lite

lookup = tf.lookup


def constants(keys, values, default):
    return lookup.StaticHashTable(lookup.KeyValueTensorInitializer(keys, values), default)


def numbers_of_words():
    return constants(tf.constant(["a", "b", "ccc", ""]), tf.constant([1, 2, 3, 9], tf.int64), -1)


def words_of_numbers():
    return constants(tf.constant([1, 2, 30], tf.int64), tf.constant(["x", "yy", ""]), "none")


def results(interpreter, content, key="serving_default", **values):
    return interpreter(model_content=content).get_signature_runner(key)(**values)


def same(ours, wanted):
    np.testing.assert_array_equal(np.asarray(ours, object), np.asarray(wanted, object))


class Words(tf.Module):
    def __init__(self):
        self.numbers, self.words = numbers_of_words(), words_of_numbers()

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string), tf.TensorSpec([None, 2], tf.int64)])
    def look(self, words, numbers):
        found = self.numbers.lookup(words)
        return {"numbers": found, "words": self.words.lookup(numbers), "size": self.numbers.size() + 1}

    @tf.function(input_signature=[tf.TensorSpec([2], tf.string)])
    def again(self, words):
        return {"twice": self.words.lookup(self.numbers.lookup(words))}

    @tf.function(input_signature=[tf.TensorSpec([3], tf.float32)])
    def plain(self, x):
        return {"y": x * 2.0}


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    module, folder = Words(), tmp_path_factory.mktemp("words")
    tf.saved_model.save(module, str(folder), {"look": module.look, "again": module.again, "plain": module.plain})
    return module, folder


def test_tables_of_the_format(words, litert):
    module, folder = words
    content = lite.TFLiteConverter.from_saved_model(folder).convert()
    texts, numbers = np.array([b"b", b"?", b"", b"ccc"], object), np.array([[1, 30], [2, 4]], np.int64)
    wanted = module.look(tf.constant(texts.tolist()), numbers)
    pair = np.array([b"a", b"q"], object)
    twice = module.again(tf.constant(pair.tolist()))["twice"].numpy()
    for interpreter in (lite.Interpreter, litert):
        ours = results(interpreter, content, "look", words=texts, numbers=numbers)
        same(ours["numbers"], wanted["numbers"])
        same(ours["words"], wanted["words"].numpy())
        assert ours["size"] == 5 and ours["size"].shape == ()
        same(results(interpreter, content, "again", words=pair)["twice"], twice)
        x = np.ones(3, np.float32)
        np.testing.assert_array_equal(results(interpreter, content, "plain", x=x)["y"], x * 2)


def test_tables_are_written_as_tensorflow_does(words):
    _, folder = words
    content = lite.TFLiteConverter.from_saved_model(folder, ["again"]).convert()
    theirs = tf.lite.TFLiteConverter.from_saved_model(str(folder), ["again"]).convert()
    assert operators(content) == operators(theirs)
    assert operators(lite.TFLiteConverter.from_saved_model(folder, ["plain"]).convert()) == [["MUL"]]


def operators(content):
    """Names of the nodes of each subgraph."""
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))
    names = {number: name for name, number in vars(schema.BuiltinOperator).items() if isinstance(number, int)}
    codes = [max(code.builtinCode, code.deprecatedBuiltinCode) for code in model.operatorCodes]
    return [sorted(names[codes[op.opcodeIndex]] for op in graph.operators or []) for graph in model.subgraphs]


class Lines(tf.Module):
    def __init__(self, path):
        index, columns = lookup.TextFileIndex, (tf.string, 1, tf.int64, 0)
        whole = (tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER)
        self.lines = lookup.StaticHashTable(lookup.TextFileInitializer(path, *whole), -1)
        turned = lookup.TextFileInitializer(path, tf.int64, index.LINE_NUMBER, tf.string, index.WHOLE_LINE)
        self.texts = lookup.StaticHashTable(turned, "?")
        self.second = lookup.StaticHashTable(lookup.TextFileInitializer(path, *columns, delimiter=" "), -1)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def look(self, x):
        return {"line": self.lines.lookup(x), "back": self.texts.lookup(self.lines.lookup(x)),
                "second": self.second.lookup(x)}  # fmt: skip


def test_tables_from_files(litert, tmp_path):
    (tmp_path / "words.txt").write_text("10 red\n20 green\n30 blue")
    module = Lines(str(tmp_path / "words.txt"))
    folder = tmp_path / "model"
    tf.saved_model.save(module, str(folder), {"serving_default": module.look})
    content = lite.TFLiteConverter.from_saved_model(folder).convert()
    x = np.array([b"20 green", b"blue", b"30 blue"], object)
    wanted = module.look(tf.constant(x.tolist()))
    for interpreter in (lite.Interpreter, litert):
        ours = results(interpreter, content, x=x)
        for name, value in wanted.items():
            same(ours[name], value.numpy())
    (folder / "assets" / "words.txt").write_text("red\n")
    with pytest.raises(leadline.Error, match=r"words\.txt.*columns|columns"):
        lite.TFLiteConverter.from_saved_model(folder)
    (folder / "assets" / "words.txt").unlink()
    with pytest.raises(leadline.Error, match=r"words\.txt"):
        lite.TFLiteConverter.from_saved_model(folder)


class Numbers(tf.Module):
    """Tables that .tflite files do not have."""

    def __init__(self):
        self.long = constants(tf.constant([5, 7, -1], tf.int64), tf.constant([50, 70, 90], tf.int64), -2)
        self.short = constants(tf.constant([5, 7], tf.int32), tf.constant([0.5, 0.7]), 0.0)

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.int64)])
    def look(self, x):
        return {"long": self.long.lookup(x), "short": self.short.lookup(tf.cast(x, tf.int32))}


def test_small_tables_of_numbers(litert, tmp_path):
    module = Numbers()
    tf.saved_model.save(module, str(tmp_path), {"serving_default": module.look})
    content = lite.TFLiteConverter.from_saved_model(tmp_path).convert()
    x = np.array([[5, 6], [-1, 7]], np.int64)
    wanted = module.look(x)
    for interpreter in (lite.Interpreter, litert):
        ours = results(interpreter, content, x=x)
        np.testing.assert_array_equal(ours["long"], wanted["long"])
        np.testing.assert_array_equal(ours["short"], wanted["short"])


class Chosen(tf.Module):
    def __init__(self):
        self.table = numbers_of_words()

    @tf.function(input_signature=[tf.TensorSpec([2], tf.string), tf.TensorSpec([], tf.bool)])
    def look(self, x, flag):
        return {"y": tf.cond(flag, lambda: self.table.lookup(x), lambda: tf.zeros([2], tf.int64))}


def test_tables_in_branches(litert, tmp_path):
    module = Chosen()
    tf.saved_model.save(module, str(tmp_path), {"serving_default": module.look})
    content = lite.TFLiteConverter.from_saved_model(tmp_path).convert()
    x = np.array([b"b", b"?"], object)
    for interpreter in (lite.Interpreter, litert):
        for flag, wanted in ((True, [2, -1]), (False, [0, 0])):
            np.testing.assert_array_equal(results(interpreter, content, x=x, flag=np.bool_(flag))["y"], wanted)


class Strange(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([2, 3, 4, 1])])
    def compute(self, x):
        glimpse = tf.raw_ops.ExtractGlimpse(
            input=x, size=[2, 2], offsets=[[0.0, 0.0], [0.0, 0.0]], centered=True, normalized=False, uniform_noise=False
        )
        return {"y": tf.raw_ops.Digamma(x=x) * 2.0, "z": glimpse}


@pytest.fixture(scope="module")
def strange(tmp_path_factory):
    module, folder = Strange(), tmp_path_factory.mktemp("strange")
    tf.saved_model.save(module, str(folder), {"serving_default": module.compute})
    return folder


def customs(content):
    """(name, options, shapes of outputs) of each custom op."""
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))
    found = []
    for op in model.subgraphs[0].operators:
        code = model.operatorCodes[op.opcodeIndex]
        if code.customCode:
            options = flexbuffers.Loads(bytes(op.customOptions)) if op.customOptions is not None else {}
            options.pop("T", None)  # a type, for which theirs have a zero
            shapes = [list(model.subgraphs[0].tensors[i].shape) for i in op.outputs]
            found.append((code.customCode.decode(), options, shapes))
    return sorted(found, key=lambda row: row[0])


def test_custom_ops_have_names_options_and_shapes_as_tensorflow_writes_them(strange):
    converter = lite.TFLiteConverter.from_saved_model(strange)
    for method in (converter.convert, converter.plan):
        with pytest.raises(leadline.UnsupportedError, match=r"\((Digamma|ExtractGlimpse)\).*allow_custom_ops"):
            method()
    converter.allow_custom_ops = True
    content = converter.convert()
    theirs = tf.lite.TFLiteConverter.from_saved_model(str(strange))
    theirs.allow_custom_ops = True
    assert customs(content) == customs(theirs.convert())
    assert [row[0] for row in customs(content)] == ["Digamma", "ExtractGlimpse"]


@pytest.mark.skipif(PROGRAM is None, reason="the leadline program is not built")
def test_custom_ops_from_the_command_line(strange, tmp_path):
    command = [PROGRAM, "convert", str(strange), "-o", str(tmp_path / "m.tflite")]
    refused = subprocess.run(command, capture_output=True, text=True)
    assert refused.returncode != 0 and "allow_custom_ops" in refused.stderr and not (tmp_path / "m.tflite").exists()
    subprocess.run([*command, "--allow-custom-ops"], check=True, capture_output=True)
    assert [row[0] for row in customs((tmp_path / "m.tflite").read_bytes())] == ["Digamma", "ExtractGlimpse"]


def test_custom_ops_may_have_results_of_any_batch(tmp_path):
    class Module(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None, 3])])
        def compute(self, x):
            return {"y": tf.raw_ops.Digamma(x=x * 2.0) + 1.0}

    module = Module()
    tf.saved_model.save(module, str(tmp_path), {"serving_default": module.compute})
    converter = lite.TFLiteConverter.from_saved_model(tmp_path)
    converter.allow_custom_ops = True
    content = converter.convert()
    assert customs(content)[0][2] == [[1, 3]]
