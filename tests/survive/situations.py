# SPDX-License-Identifier: Apache-2.0
"""Cells that take all memory of a container, each in steps of a given size. None of them may end its kernel."""

from __future__ import annotations

from dataclasses import dataclass

MB = 1_000_000
# Before the first cell. `pause(seconds)` is called after each step. `hold(size)` is the data that a notebook has before a
# loop begins: in blocks, so that it can be made smaller for the next loop without being made anew.
SETUP = """
%load_ext leadline
import gc, os, sys, time
import numpy as np
kept = {'answer': 42, 'array': np.arange(1000)}
class Held:
    blocks = []
def pause(seconds):
    if seconds: time.sleep(seconds)
def hold(size):
    # frames of the last error hold what functions were working on
    for name in ('last_traceback', 'last_value', 'last_exc'): setattr(sys, name, None)
    get_ipython().InteractiveTB.tb = None
    gc.collect()
    count = size // 16_000_000
    del Held.blocks[count:]
    while len(Held.blocks) < count: Held.blocks.append(np.ones(2_000_000))
"""
CHECK = "L = D = a = None; import gc; gc.collect(); (kept['answer'], int(kept['array'].sum()))"
CHECKED = "(42, 499500)"


@dataclass(frozen=True)
class Situation:
    """A cell with {size} (bytes of a step) and {pause} (seconds), and the library that it needs."""

    name: str
    cell: str
    library: str = "numpy"
    prepare: str = ""
    smallest: float = 0.0  # step, as a part of the container; 1 MB if that is more
    largest: float = 1.0
    room: int = 400 * MB  # what a loop of small steps may take; the rest of a larger container is held by data
    native: bool = False  # memory is taken by a library that nobody may refuse it


_LOOP = "L = []\nwhile True:\n    {body}\n    pause({{pause}})"


def _loop(name: str, body: str, **rest) -> Situation:
    return Situation(name, _LOOP.format(body=body), **rest)


PYTHON = [
    _loop("np.ones", "L.append(np.ones({size} // 8))"),
    _loop("np.zeros, filled at once", "L.append(np.zeros({size} // 8)); L[-1] += 1"),
    _loop("np.empty, filled at once", "L.append(np.empty({size} // 8)); L[-1].fill(3)"),
    Situation(
        "np.zeros, filled later",
        "L = []\ntry:\n    while True:\n        L.append(np.zeros({size} // 8)); pause({pause})\n"
        "finally:\n    for a in L: a.fill(1); pause({pause})",
    ),
    _loop("lists of floats", "L.append(list(map(float, range({size} // 32))))"),
    _loop("bytes", "L.append(b'x' * {size})"),
    _loop("bytearray that grows", "L.append(bytearray()); L[-1].extend(b'x' * {size})", largest=0.5),
    Situation(
        "strings in a dict",
        "D = {{}}\ni = 0\nwhile True:\n    for _ in range({size} // 160): D[i] = str(i) * 4; i += 1\n    pause({pause})",
    ),
    Situation(
        "pandas.concat",
        "D = pd.DataFrame({{'a': np.arange({size} // 16), 'b': 1.5}})\nL = D\nwhile True:\n"
        "    L = pd.concat([L, D], ignore_index=True)\n    pause({pause})",
        library="pandas",
        prepare="import pandas as pd",
        largest=0.5,
        room=200 * MB,  # every step copies everything
    ),
    _loop(
        "pandas.read_csv",
        "L.append(pd.read_csv(csv_file({size})))",
        library="pandas",
        prepare="""import pandas as pd
def csv_file(size):
    # about as large in memory as asked: two columns of 8 bytes from lines of 16
    rows = max(size // 16, 1)
    if not os.path.exists(f'{rows}.csv'):
        with open(f'{rows}.csv', 'w') as file:
            file.write('a,b\\n')
            for start in range(0, rows, 10000):
                file.write('1234567,1.234567\\n' * min(10000, rows - start))
    return f'{rows}.csv'""",
        largest=0.3,
        room=200 * MB,
    ),
]

_TENSORFLOW = "import tensorflow as tf; L = tf.ones(4); L = None"


def _native(name: str, cell: str, library: str, prepare: str, **rest) -> Situation:
    return Situation(name, cell, library=library, prepare=prepare, native=True, **rest)


def _native_loop(name: str, body: str, library: str, prepare: str) -> Situation:
    return _native(name, _LOOP.format(body=body), library, prepare)


def _single(name: str, call: str, library: str, prepare: str) -> Situation:
    """One call for about as much as there is, less or more."""
    return _native(name, "L = " + call, library, prepare, smallest=0.3, largest=1.5)


_JAX = "import jax, jax.numpy as jnp; L = jnp.ones(4).block_until_ready(); L = None"
_KERAS = (
    _TENSORFLOW + "\nmodel = tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(1000)])\n"
    "model.predict(np.ones((4, 8), np.float32), verbose=0)[0, 0]"
)
NATIVE = [
    _native_loop("jax.numpy.ones", "L.append(jnp.ones({size} // 4).block_until_ready())", "jax", _JAX),
    _single("jax.numpy.ones, once", "jnp.ones({size} // 4).block_until_ready()", "jax", _JAX),
    _single("jax.jit, once", "jax.jit(lambda n: jnp.sort(n * 2.0))(jnp.ones({size} // 12)).block_until_ready()", "jax", _JAX),
    _native_loop("tf.ones", "L.append(tf.ones({size} // 4))", "tensorflow", _TENSORFLOW),
    _single("tf.ones, once", "tf.ones({size} // 4)", "tensorflow", _TENSORFLOW),
    _single("tf.matmul, once", "tf.matmul(tf.ones(({size} // 4096, 8)), tf.ones((8, 1024)))", "tensorflow", _TENSORFLOW),
    _native(
        "tf.data shuffle",
        "D = tf.data.Dataset.range(10**9).map(lambda i: tf.ones({size} // 4)).shuffle(10**6)\nL = next(iter(D))",
        "tensorflow",
        _TENSORFLOW,
    ),
    _native(
        "tf.function",
        "@tf.function\ndef f(n):\n    a = tf.TensorArray(tf.float32, 0, dynamic_size=True)\n    for i in tf.range(n):\n"
        "        a = a.write(i, tf.ones({size} // 4))\n    return a.stack()\nL = f(10**6)",
        "tensorflow",
        _TENSORFLOW,
    ),
    _single("Keras predict", "model.predict(np.ones(({size} // 4000, 8), np.float32), batch_size=4096, verbose=0)",
            "tensorflow", _KERAS),
    _native_loop("torch.ones", "L.append(torch.ones({size} // 4))", "torch", "import torch"),
    _single("torch.ones, once", "torch.ones({size} // 4)", "torch", "import torch"),
    _native_loop("pyarrow arrays", "L.append(pa.nulls({size} // 8, pa.float64()).fill_null(1.0))", "pyarrow",
                 "import pyarrow as pa, pyarrow.compute"),
    Situation(
        "a shared map, filled in one call",
        "import mmap\nL = mmap.mmap(-1, 64 * {size})\nL[:] = bytes({size}) * 64",
        native=True,
        largest=0.1,
    ),
]  # fmt: skip


def sizes(container: int, steps: int, largest: float = 1.0, smallest: float = 0.0) -> list[int]:
    """Steps between two parts of the container (1 MB at least), evenly spread in ratio."""
    first, last = max(container * smallest, MB), container * largest
    return [int(first * (last / first) ** (i / max(steps - 1, 1))) for i in range(steps)]


def room_of(situation: Situation, step: int) -> int:
    """What a loop may take before it meets the end: a few steps, or many small ones."""
    return max(situation.room, int(2.5 * step))


def pause_of(most: float, step: int, room: int) -> float:
    """Seconds after each step: two in a loop, in as many pieces as there are steps."""
    return min(most, 2.0 * step / room)
