# SPDX-License-Identifier: Apache-2.0
"""Makes the models that `make bench` runs: keras.applications with random weights of a fixed seed, a small transformer
and the first model of many a notebook, converted and quantized by Leadline.

    python bench/bench_models.py [--into build/bench-models] [--only REGEX]

Needs keras and leadline. A file is made once; its name says what it is: resnet50_int8.tflite.
"""

import argparse
import os
import re
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "build" / "bench-models"
MODES = {"f32": None, "f16": "float16", "dyn": "dynamic", "int8": "int8"}
# name -> its class in keras.applications (or a function below), side of the image, forms.
MODELS = {
    "mobilenet_v1": ("MobileNet", 224, ("f32", "dyn", "int8")),
    "mobilenet_v2": ("MobileNetV2", 224, ("f32", "dyn", "int8", "f16")),
    "mobilenet_v3_small": ("MobileNetV3Small", 224, ("f32", "int8")),
    "efficientnet_b0": ("EfficientNetB0", 224, ("f32", "int8")),
    "resnet50": ("ResNet50", 224, ("f32", "dyn", "int8", "f16")),
    "inception_v3": ("InceptionV3", 299, ("f32", "int8")),
    "densenet121": ("DenseNet121", 224, ("f32", "int8")),
    "transformer": (None, 0, ("f32", "dyn", "int8")),
    "seed": (None, 0, ("f32", "int8")),
}
SAMPLES = 8  # for calibration


def file_names() -> list[str]:
    return [f"{name}_{form}.tflite" for name, (_, _, forms) in MODELS.items() for form in forms]


def _transformer(keras):
    """Four layers of 128 steps by 256 channels, four heads."""
    layers = keras.layers
    x = inputs = keras.Input(batch_shape=(1, 128, 256), name="x")
    for _ in range(4):
        attended = layers.MultiHeadAttention(4, 64)(x, x)
        x = layers.LayerNormalization()(layers.Add()([x, attended]))
        wide = layers.Dense(1024, activation="gelu")(x)
        x = layers.LayerNormalization()(layers.Add()([x, layers.Dense(256)(wide)]))
    return keras.Model(inputs, x, name="transformer")


def _seed(keras):
    layers = keras.layers
    image = keras.Input(batch_shape=(1, 32, 32, 3), name="image")
    x = layers.Flatten()(layers.Conv2D(32, 3, activation="relu")(image))
    return keras.Model(image, layers.Dense(10, activation="softmax")(x), name="seed")


def keras_model(name: str):
    """The live model; weights depend on the name and Keras's version alone."""
    os.environ.setdefault("KERAS_BACKEND", "numpy")
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import keras

    keras.utils.set_random_seed(1)
    application, side, _ = MODELS[name]
    if application is None:
        return {"transformer": _transformer, "seed": _seed}[name](keras)
    # A batch of one: with an open one, OpenVINO would compile for any.
    image = keras.Input(batch_shape=(1, side, side, 3), name="image")
    # Logits: a softmax over random ones is nearly constant or nearly one-hot and would hide differences of outputs.
    model = getattr(keras.applications, application)(weights=None, input_tensor=image, classifier_activation=None)
    _keep_variance(model)
    return model


def _keep_variance(model) -> None:
    """Weights for which values neither vanish nor explode (He et al.). Keras's own shrink them at every depthwise
    convolution, and after fifty layers nothing is left that could be quantized or compared."""
    import numpy as np

    rng = np.random.default_rng(1)
    for layer in model.layers:
        depthwise = type(layer).__name__ == "DepthwiseConv2D"
        if not depthwise and type(layer).__name__ not in ("Conv2D", "Dense"):
            continue
        kernel = layer.kernel
        fan_in = np.prod(kernel.shape[:2] if depthwise else kernel.shape[:-1])
        kernel.assign((rng.standard_normal(kernel.shape) * np.sqrt(2.0 / fan_in)).astype(np.float32))


def make(name: str, forms: list[str], folder: Path) -> None:
    import numpy as np

    import leadline

    start = time.perf_counter()
    model = keras_model(name)
    floats = leadline.lite.TFLiteConverter.from_keras_model(model).convert()
    shape = model.inputs[0].shape
    del model
    samples = np.random.default_rng(2).uniform(-1, 1, (SAMPLES, *shape)).astype(np.float32)
    for form in forms:
        content = floats
        if form == "int8":
            dataset = [[sample] for sample in samples]
            content = leadline.quantize(floats, "int8", dataset, input_type="int8", output_type="int8")
        elif form != "f32":
            content = leadline.quantize(floats, MODES[form])
        partial = folder / f".{name}_{form}.{os.getpid()}"
        partial.write_bytes(content)
        partial.rename(folder / f"{name}_{form}.tflite")
    print(f"{name}: {', '.join(forms)} in {time.perf_counter() - start:.1f} s", file=sys.stderr, flush=True)


def make_missing(folder: Path = FOLDER, only: str = "") -> list[Path]:
    """The files of all models whose name matches `only`, made where they are missing."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, (_, _, forms) in MODELS.items():
        wanted = {form: folder / f"{name}_{form}.tflite" for form in forms if re.search(only, f"{name}_{form}")}
        missing = [form for form, path in wanted.items() if not path.exists()]
        if missing:
            make(name, missing, folder)
        paths += wanted.values()
    return paths


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--into", type=Path, default=FOLDER)
    parser.add_argument("--only", default="", metavar="REGEX", help="models whose name contains this")
    args = parser.parse_args()
    for path in make_missing(args.into, args.only):
        print(path)


if __name__ == "__main__":
    main()
