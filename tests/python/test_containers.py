# SPDX-License-Identifier: Apache-2.0
"""HDF5 and Keras files as h5py and Keras write them: every array and attribute is read as they read it."""

import io
import json
import os
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
h5py = pytest.importorskip("h5py", reason="h5py is not installed")


def find_program():
    """LEADLINE_CONTAINER_DUMP, or the one in a build folder."""
    places = [os.environ.get("LEADLINE_CONTAINER_DUMP"), *sorted(ROOT.glob("build/*/container_dump"))]
    return next((str(place) for place in places if place and os.access(place, os.X_OK)), None)


PROGRAM = find_program()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="container_dump is not built")


def dump(mode, path, tmp_path):
    """The records of a file: dictionaries, with the array under 'data' where there is one."""
    out = tmp_path / "dump.bin"
    result = subprocess.run([PROGRAM, mode, path, out], capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    content = out.read_bytes()
    records, at = [], 0
    while at < len(content):
        end = content.index(b"\n", at)
        record = json.loads(content[at:end])
        at = end + 1 + record["bytes"]
        record["data"] = content[end + 1 : at]
        records.append(record)
    return records


def write_sample(path, **options):
    values = np.arange(60 * 33 * 3, dtype="f4").reshape(60, 33, 3)
    latest = options.get("libver") == NEWEST
    with h5py.File(path, "w", **options) as file:
        file.attrs["model_config"] = '{"x": 1}' * 3000
        file.attrs["layer_names"] = np.array([b"alpha", b"be"])
        for i in range(60):
            file.attrs[f"a{i}"] = f"value{i}"
        if latest:
            file.attrs["large"] = np.array([b"x" * 70000, b"yy"])
        for kind in ("f2", "f4", "f8", ">f4", ">i2", "i1", "u1", "i8", "u4", "?"):
            file.create_dataset(f"types/{kind}", data=np.arange(7).astype(kind))
        file["scalar"] = np.float32(3.5)
        file["empty"] = np.zeros((0, 4), "f4")
        for i in range(400):
            file.create_dataset(f"many/child{i}", data=np.float32(i))
        for i in range(12):
            file.create_dataset(f"some/child{i}", data=np.float32([i, 2]))
        chunks = file.create_group("chunks")
        chunks.create_dataset("plain", data=values, chunks=(7, 5, 2))
        chunks.create_dataset("deflate", data=values, chunks=(7, 5, 2), compression="gzip")
        chunks.create_dataset(
            "all", data=values, chunks=(16, 16, 3), compression="gzip", shuffle=True, fletcher32=True
        )  # fmt: skip
        chunks.create_dataset("one", data=values, chunks=(60, 33, 3), compression="gzip")
        chunks.create_dataset("pages", data=values, chunks=(1, 2, 1))
        chunks.create_dataset("grows", data=values, chunks=(7, 5, 2), maxshape=(None, None, 3))
        chunks.create_dataset("grows_packed", data=values, chunks=(1, 2, 2), maxshape=(None, None, 3), compression=1)
        chunks.create_dataset("bounded", data=values, chunks=(7, 5, 2), maxshape=(100, 50, 3))
        sparse = chunks.create_dataset("sparse", shape=(40, 40), dtype="i4", chunks=(8, 8), fillvalue=7)
        sparse[9:12, 3:5] = 1
        file.create_dataset("never_written", shape=(5,), dtype="f4", fillvalue=2.5)
        file["named"] = np.dtype("f4")
        file.create_dataset("of_named", data=np.arange(3, dtype="f4"), dtype=file["named"])


NEWEST = ("v110", "latest")

FORMS = {
    "default": {},
    "latest": {"libver": NEWEST},
    "v114": {"libver": ("v110", "v114")},
    "v108": {"libver": ("v108", "v108")},
    "user_block": {"userblock_size": 1024},
    "track_order": {"track_order": True},
}


@pytest.mark.parametrize("form", FORMS)
def test_hdf5_is_read_as_h5py_reads_it(form, tmp_path):
    path = tmp_path / "a.h5"
    write_sample(path, **FORMS[form])
    records = dump("hdf5", path, tmp_path)
    arrays = {record["path"]: record for record in records if "shape" in record}
    attributes = {(r["path"], r["attribute"]): r["strings"] for r in records if "attribute" in r}
    errors = [record["error"] for record in records if "error" in record]
    assert len(errors) == 1 and "'/named'" in errors[0], errors  # a type is neither group nor dataset
    seen = 0
    with h5py.File(path) as file:

        def compare(name, item):
            nonlocal seen
            if isinstance(item, h5py.Dataset):
                value = np.asarray(item)
                value = value.astype(value.dtype.newbyteorder("<"))
                assert arrays[name]["shape"] == list(value.shape), name
                assert arrays[name]["type"] == str(value.dtype), name
                assert arrays[name]["data"] == value.tobytes(), name
                seen += 1

        file.visititems(compare)
        assert seen == len(arrays)
        assert attributes["", "model_config"] == [file.attrs["model_config"]]
    assert attributes["", "layer_names"] == ["alpha", "be"]
    assert attributes["", "a3"] == ["value3"]
    if form == "latest":
        assert attributes["", "large"] == ["x" * 70000, "yy"]


def test_what_is_not_read_is_named(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=NEWEST) as file:
        file["here"] = np.float32(1)
        file["soft"] = h5py.SoftLink("/here")
        file["outside"] = h5py.ExternalLink("/etc/passwd", "/")
        file.create_dataset("grows", data=np.zeros(10), chunks=(2,), maxshape=(None,))
        file.create_dataset("lzf", data=np.zeros(10), chunks=(2,), compression="lzf")
        file["pair"] = np.zeros(3, "c8")
    records = {record["path"]: record for record in dump("hdf5", path, tmp_path)}
    assert "link" in records["soft"]["error"] and "link" in records["outside"]["error"]
    assert "extensible array" in records["grows"]["error"]
    assert "filter 32000" in records["lzf"]["error"]
    assert records["pair"]["type"] == "structure of 8 bytes"


@pytest.mark.parametrize("form", ["default", "latest"])
def test_mutated_files_do_no_harm(form, tmp_path, long_run):
    path = tmp_path / "a.h5"
    options = FORMS[form]
    with h5py.File(path, "w", **options) as file:
        file.attrs["model_config"] = "{}" * 100
        file.create_dataset(
            "packed", data=np.arange(400, dtype="f4").reshape(20, 20), chunks=(7, 6),
            compression="gzip", shuffle=True, fletcher32=True,
        )  # fmt: skip
        for i in range(12):
            file.attrs[f"a{i}"] = f"{i}"
            file.create_dataset(f"many/{i}", data=np.float32([i]))
        file["many"].attrs["layer_names"] = ["a", "bcd"]
    count = 20000 if long_run else 1000
    result = subprocess.run(
        [PROGRAM, "fuzz", path, str(count), "1"], capture_output=True, text=True, timeout=600, check=False
    )
    assert result.returncode == 0, result.stderr


def build_models(keras):
    """Small models that between them have every layout of variables Keras writes."""
    layers = keras.layers

    def recurrent():
        x = inputs = keras.Input((5, 8))
        x = layers.Bidirectional(layers.LSTM(4, return_sequences=True))(x)
        x = layers.RNN([layers.LSTMCell(3), layers.GRUCell(2)], return_sequences=True)(x)
        return keras.Model(inputs, layers.TimeDistributed(layers.Dense(2))(x))

    def attention():
        x = inputs = keras.Input((5, 8))
        x = layers.MultiHeadAttention(2, 4)(x, x)
        return keras.Model(inputs, layers.PReLU()(layers.LayerNormalization()(x)))

    def nested():
        x = inputs = keras.Input((8,))
        parts = [keras.Input((8,)), layers.Dense(4), layers.BatchNormalization(), layers.Dense(8)]
        shared = layers.Dense(8, name="shared")
        x = shared(shared(keras.Sequential(parts, name="inner")(x)))
        for _ in range(12):
            x = layers.Dense(8)(x)
        return keras.Model(inputs, x)

    def long_names():
        x = inputs = keras.Input((8,))
        for i in range(700):
            x = layers.Dense(1, name=f"a_name_so_long_that_the_list_of_all_names_does_not_fit_into_one_attribute_{i}")(
                x
            )
        return keras.Model(inputs, x)

    return {"recurrent": recurrent, "attention": attention, "nested": nested, "long_names": long_names}


def test_deflated_archive_is_read_as_the_stored_one(tmp_path):
    weights = io.BytesIO()
    with h5py.File(weights, "w") as file:
        file["layers/dense/vars/0"] = np.arange(5000, dtype="f4")
    arrays = []
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        path = tmp_path / "model.keras"
        with zipfile.ZipFile(path, "w", method) as archive:
            archive.writestr("config.json", "{}")
            with archive.open("model.weights.h5", "w", force_zip64=True) as entry:  # sizes follow the data
                entry.write(weights.getvalue())
        arrays.append(dump("keras", path, tmp_path)[1]["data"])
    assert arrays[0] == arrays[1] == np.arange(5000, dtype="f4").tobytes()


def randomize(model):
    rng = np.random.default_rng(1)
    model.set_weights([rng.random(w.shape).astype(w.dtype) if w.dtype.kind == "f" else w for w in model.get_weights()])


@pytest.mark.parametrize("suffix", ["keras", "h5"])
@pytest.mark.parametrize("name", ["recurrent", "attention", "nested", "long_names"])
@pytest.mark.parametrize("package", ["keras", "tf_keras"])
def test_every_variable_is_read(package, name, suffix, tmp_path):
    keras = pytest.importorskip(package, reason=f"{package} is not installed")
    model = build_models(keras)[name]()
    randomize(model)
    path = tmp_path / f"model.{suffix}"
    model.save(path)
    head, *variables = dump("keras", path, tmp_path)
    assert head["version"] == keras.__version__.removesuffix("-tf")
    assert json.loads(head["config"])["class_name"] == "Functional"
    assert len(variables) == len(model.weights)
    if suffix == "h5":
        # By layer, the trainable ones of all that is inside first.
        by_layer = {layer.name: layer.trainable_weights + layer.non_trainable_weights for layer in model.layers}
        for layer, weights in by_layer.items():
            read = [variable["data"] for variable in variables if variable["layer"] == layer]
            assert read == [np.asarray(weight).tobytes() for weight in weights], layer
        return
    saved = h5py.File(io.BytesIO(zipfile.ZipFile(path).read("model.weights.h5")))
    for variable in variables:
        assert variable["data"] == np.asarray(saved[variable["name"]]).tobytes(), variable["name"]
    # Whatever the paths are: the values are those of the model.
    assert sorted(v["data"] for v in variables) == sorted(np.asarray(w).tobytes() for w in model.weights)
