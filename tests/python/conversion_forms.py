# SPDX-License-Identifier: Apache-2.0
"""The forms a Keras model is saved in, what TFLiteConverter makes of them, and how far a converted file is from both."""

from __future__ import annotations

import collections
import shutil
from pathlib import Path

import keras_models
import numpy as np

import leadline
from leadline import lite

# Form: the file or folder, and the package that wrote it.
FORMS = {
    ".keras": ("keras3.keras", "keras"),
    ".h5": ("keras3.h5", "keras"),
    "live": ("keras3.keras", "keras"),
    "exported": ("exported", "exported"),
    "tf_keras.keras": ("tf_keras.keras", "tf_keras"),
    "tf_keras.h5": ("tf_keras.h5", "tf_keras"),
    "tf_keras.saved": ("tf_saved", "tf_saved"),
}


def write(path: Path, content: bytes) -> None:
    temporary = path.with_suffix(".part")
    temporary.write_bytes(content)
    temporary.rename(path)


def make(name: str, folder: Path) -> None:
    """Everything that only TensorFlow can make of one model; what is there is kept."""
    import tensorflow as tf
    import tf_keras
    from keras_compare import predict

    def theirs(target: str, converter) -> None:
        if (folder / target).exists():
            return
        try:
            write(folder / target, converter().convert())
        except Exception as error:  # their converter has no answer for some models
            (folder / f"{target}.failed").write_text(str(error))

    def build():
        return (keras_models.make if name in keras_models.MODELS else keras_models.application)(name)

    def remember(model, target: str) -> None:
        values = keras_models.example(model, 2)
        results = predict(model, values)
        np.savez(folder / target, *values, **{f"result_{i}": result for i, result in enumerate(results)})

    folder.mkdir(parents=True, exist_ok=True)
    model = build()
    model.save(folder / "keras3.keras")
    model.save(folder / "keras3.h5")
    model.export(folder / "exported", verbose=False)
    remember(model, "keras.npz")
    theirs("keras.tflite", lambda: tf.lite.TFLiteConverter.from_keras_model(model))
    theirs("exported.tflite", lambda: tf.lite.TFLiteConverter.from_saved_model(str(folder / "exported")))
    with keras_models.made_with(tf_keras):
        model = build()
        model.save(folder / "tf_keras.keras")
        model.save(folder / "tf_keras.h5")
        model.save(folder / "tf_saved", save_format="tf")
        remember(model, "tf_keras.npz")
    shutil.copy(folder / "tf_keras.npz", folder / "tf_saved.npz")
    shutil.copy(folder / "keras.npz", folder / "exported.npz")
    theirs("tf_saved.tflite", lambda: tf.lite.TFLiteConverter.from_saved_model(str(folder / "tf_saved")))
    # The live tf_keras model is converted through the same frozen function.
    if (folder / "tf_saved.tflite").exists():
        shutil.copy(folder / "tf_saved.tflite", folder / "tf_keras.tflite")
    (folder / "complete").touch()


def describe(content: bytes) -> tuple[int, collections.Counter]:
    model = leadline.Model.from_bytes(content)
    graphs = [model.subgraph(i) for i in range(model.subgraph_count)]
    return len(content), collections.Counter(node.op for graph in graphs for node in graph.nodes)


def convert(form: str, path: Path) -> bytes:
    if form == "live":
        import keras

        return lite.TFLiteConverter.from_keras_model(keras.models.load_model(path)).convert()
    if path.is_dir():
        return lite.TFLiteConverter.from_saved_model(path).convert()
    return lite.TFLiteConverter.from_keras_file(path).convert()


def distance(interpreter_class, content: bytes, known) -> float:
    """The largest difference as a part of the range; the values were made for the inputs in order."""
    values = [known[f"arr_{i}"] for i in range(sum(key.startswith("arr_") for key in known))]
    wanted = [known[f"result_{i}"] for i in range(sum(key.startswith("result_") for key in known))]
    interpreter = interpreter_class(model_content=content)
    details = sorted(interpreter.get_input_details(), key=lambda d: d["name"])
    for detail, value in zip(details, values, strict=True):
        interpreter.resize_tensor_input(detail["index"], value.shape)
    interpreter.allocate_tensors()
    for detail, value in zip(details, values, strict=True):
        interpreter.set_tensor(detail["index"], value.astype(detail["dtype"]))
    interpreter.invoke()
    results = [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]
    largest = 0.0
    for right in wanted:
        left = next(r for r in results if r.shape == right.shape)  # the order of outputs is the form's own
        largest = max(largest, float(np.abs(left - right).max()) / (float(np.ptp(right)) or 1.0))
    return largest
