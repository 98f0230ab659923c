# SPDX-License-Identifier: Apache-2.0
"""Models that LiteRT's tests read and that its build makes of the graphs beside them: python made_models.py FOLDER

Made by TensorFlow, from what is in the clone, as its BUILD files say. `two_signatures.tflite`, which some clones lack,
is made after what the tests expect of it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any


def frozen(tf: Any, graph: Path, inputs: list[str], result: Path, **settings: Any) -> None:
    from google.protobuf import text_format

    definition = text_format.Parse(graph.read_text(), tf.compat.v1.GraphDef())
    with tempfile.NamedTemporaryFile(suffix=".pb") as file:
        file.write(definition.SerializeToString())
        file.flush()
        converter = tf.compat.v1.lite.TFLiteConverter.from_frozen_graph(file.name, inputs, ["output"])
    for name, value in settings.items():
        setattr(converter, name, value)
    result.write_bytes(converter.convert())


def two_signatures(tf: Any, result: Path) -> None:
    class Both(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([1], tf.float32, name="x")])
        def add(self, x: Any) -> Any:
            return {"output_0": x + 2.0}

        @tf.function(input_signature=[tf.TensorSpec([1], tf.float32, name="x")])
        def multiply(self, x: Any) -> Any:
            return {"output_0": x * 3.0}

    module = Both()
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder, signatures={"add": module.add, "multiply": module.multiply})
        result.write_bytes(tf.lite.TFLiteConverter.from_saved_model(folder).convert())


def main(folder: Path) -> None:
    import tensorflow as tf

    bytes_of_images = {"quantized_input_stats": {"input": (0.0, 1.0)}, "default_ranges_stats": (0, 255)}
    frozen(tf, folder / "permute.pbtxt", ["input"], folder / "permute_float.tflite")
    frozen(
        tf,
        folder / "permute.pbtxt",
        ["input"],
        folder / "permute_uint8.tflite",
        inference_type=tf.uint8,
        **bytes_of_images,
    )
    for graph, result in (("gather", "gather_string"), ("gather_0d", "gather_string_0d")):
        frozen(tf, folder / f"{graph}.pbtxt", ["input", "indices"], folder / f"{result}.tflite")
    if not (folder / "two_signatures.tflite").exists():
        two_signatures(tf, folder / "two_signatures.tflite")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
