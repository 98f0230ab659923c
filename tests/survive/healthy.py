# SPDX-License-Identifier: Apache-2.0
"""Notebooks that take much memory and fit: the watch must not say a word. {size} is the most bytes that one has at a time,
beside the kernel and its libraries."""

from __future__ import annotations

from dataclasses import dataclass

_LEAST = 16_000_000


@dataclass(frozen=True)
class Notebook:
    """Cells that run one after the other. What is large is in L and D, which are emptied after the last."""

    name: str
    cells: tuple[str, ...]
    library: str = "numpy"
    takes: float = 1.0  # bytes at a time for a byte of {size}: of objects whose overhead depends on Python's version
    loads: int = 0  # bytes of a library that comes with the first cell

    def sized(self, most: int) -> list[str]:
        """The cells, with at most this many bytes at a time, but some in any case: a kernel may have grown before."""
        size = int(max(most - self.loads, _LEAST) / self.takes)
        return [cell.format(size=size) for cell in self.cells]


def _one(name: str, *cells: str, library: str = "numpy", takes: float = 1.0, loads: int = 0) -> Notebook:
    return Notebook(name, cells, library, takes, loads)


ARRAYS = [
    _one("one large array", "L = np.ones({size} // 8); L.sum()"),
    _one("zeros that are filled", "L = np.zeros({size} // 8); L += 1"),
    _one("zeros that are never touched", "L = np.zeros({size} // 8); L[::1000].sum()"),
    _one("an array replaced in a loop", "for i in range(6):\n    L = np.full({size} // 16, i)"),
    _one("temporaries of an expression", "L = np.ones({size} // 40)\nD = (L * 2 + L * 3) / (L + 1)"),
    _one("many small arrays", "L = [np.ones(1000) for _ in range({size} // 8200)]"),
    _one("many arrays, freed in turn", "for _ in range(60):\n    L = np.random.default_rng(0).random({size} // 80)"),
    _one("a saw", "for i in range(1, 13):\n    L = None; L = [np.ones({size} // 96) for _ in range(i)]"),
    _one("sorting", "L = np.random.default_rng(0).random({size} // 24)\nL.sort(); D = np.argsort(L)"),
    _one("matrix product", "n = int(({size} // 32) ** 0.5)\nL = np.ones((n, n)) @ np.ones((n, n))"),
    _one("singular values", "L = np.linalg.svd(np.ones(({size} // 8 // 240, 48)), full_matrices=False)"),
    _one(
        "a transform",
        "L = np.ones(1 << ({size} // 40).bit_length() - 1)\nD = np.fft.rfft(L); L = None; L = np.fft.irfft(D)",
    ),
    _one("saved and loaded", "L = np.ones({size} // 16); np.save('a.npy', L)", "D = np.load('a.npy'); (D == 1).all()"),
    _one(
        "loaded as a map", "L = np.ones({size} // 8); np.save('a.npy', L); L = None", "D = np.load('a.npy', 'r').sum()"
    ),
    _one(
        "a mapped file",
        "L = np.memmap('map.bin', np.uint8, 'w+', shape=({size},))\nL[:] = 1\nD = int(L.sum()); L.flush(); del L",
    ),
    _one(
        "a MemoryError that is handled",
        "try:\n    np.ones(10**13)\nexcept MemoryError:\n    L = np.ones({size} // 16)",
    ),
    _one(
        "sizes tried until one fits",
        "n = 10**13\nwhile True:\n    try:\n        L = np.empty(n, np.uint8); break\n    except MemoryError: n //= 4\n"
        "L = None\nL = np.ones({size} // 8)",
    ),
    _one(
        "small arrays, then a large one",
        "L = [np.ones(1000) for _ in range({size} // 8200)]",
        "L = None; L = np.ones({size} // 8)",
    ),
    _one(
        "a large array among the rest of small ones",
        "L = [np.ones(1000) for _ in range({size} // 8200)]",
        "L = L[::200]; D = np.ones({size} // 9); D.sum()",
    ),
    _one("one array after the other, cell by cell", *["D = np.ones({size} // 8 // 4); L = (L or []) + [D]"] * 4),
    _one("one array in the place of the last, cell by cell", *["L = D = None; L = np.ones({size} // 8)"] * 5),
]

OBJECTS = [
    _one("a list of floats", "L = [float(i) for i in range({size} // 41)]", takes=1.3),
    _one("a dict of strings", "D = {{i: str(i) for i in range({size} // 180)}}", takes=1.2),
    _one("tuples that refer to each other", "L = None\nfor i in range({size} // 90): L = (i, L)", takes=1.1),
    _one("bytes joined", "L = b''.join(b'x' * 100_000 for _ in range({size} // 200_000))"),
    _one("a bytearray that grows", "L = bytearray()\nfor _ in range({size} // 250_000): L += b'x' * 100_000"),
    _one("a string that grows", "L = ''\nfor _ in range({size} // 250_000): L += 'x' * 100_000"),
    _one("json there and back", "import json\nL = json.loads(json.dumps(list(range({size} // 60))))", takes=1.2),
    _one("pickle there and back", "import pickle\nL = pickle.loads(pickle.dumps(np.ones({size} // 32)))"),
    _one("a generator", "sum(x * x for x in range({size} // 200))"),
    _one(
        "a cache that forgets",
        "import functools\n@functools.lru_cache(maxsize=20)\ndef load(i): return np.full({size} // 8 // 22, i)\n"
        "for i in range(200): load(i % 37).sum()\nload.cache_clear()",
    ),
    _one(
        "a queue between threads",
        "import queue, threading\nL = queue.Queue(8)\ndef produce():\n"
        "    for i in range(80): L.put(np.full({size} // 8 // 11, i))\n    L.put(None)\n"
        "thread = threading.Thread(target=produce); thread.start()\nwhile (D := L.get()) is not None: D.sum()\nthread.join()",
    ),
    _one(
        "cycles for the garbage collector",
        "class Node: pass\nfor _ in range({size} // 40_000):\n    a, b = Node(), Node(); a.b, b.a = b, a\n"
        "    a.data = bytes(20_000)\n    if _ % 300 == 0: import gc; gc.collect()",
    ),
    _one(
        "errors with large locals",
        "def fail(n):\n    data = np.ones(n)\n    raise ValueError(data.sum())\nL = []\nfor _ in range(20):\n    try:\n"
        "        fail({size} // 16)\n    except ValueError as error: L.append(str(error))",
    ),
]

FILES = [
    _one(
        "a file read and parsed",
        "with open('lines.txt', 'w') as file: file.write('12345 67890\\n' * ({size} // 150))\n"
        "L = [tuple(map(int, line.split())) for line in open('lines.txt')]",
        takes=1.2,
    ),
    _one(
        "a file larger than memory, written and read",
        "block = bytes(4_000_000)\nwith open('large.bin', 'wb') as file:\n"
        "    for _ in range({size} // 2_000_000): file.write(block)\nwith open('large.bin', 'rb') as file:\n"
        "    while file.read(4_000_000): pass\nimport os; os.remove('large.bin')",
    ),
    _one(
        "a file compressed and read",
        "import gzip\nwith gzip.open('a.gz', 'wb', 1) as file: file.write(bytes({size} // 4))\n"
        "L = gzip.open('a.gz').read(); len(L)",
    ),
    _one(
        "a database",
        "import sqlite3\nL = sqlite3.connect(':memory:')\nL.execute('create table t (a int, b text)')\n"
        "L.executemany('insert into t values (?, ?)', ((i, 'x' * 50) for i in range({size} // 90)))\n"
        "L.execute('select sum(a), count(*) from t').fetchall()",
    ),
]

TOGETHER = [
    _one(
        "threads",
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(4) as pool: L = list(pool.map(lambda n: np.ones(n).sum(), [{size} // 36] * 16))",
    ),
    _one(
        "processes",
        "import multiprocessing\nwith multiprocessing.get_context('fork').Pool(2) as pool:\n"
        "    L = pool.map(np.sum, [np.ones({size} // 160)] * 4)",
        loads=60_000_000,
    ),
    _one(
        "processes that read what they inherited",
        "import multiprocessing\nD = np.ones({size} // 8)\ndef part(i): return float(D[i::4].sum())\n"
        "with multiprocessing.get_context('fork').Pool(4) as pool: L = pool.map(part, range(4))\nlen(L)",
        loads=100_000_000,
    ),
    _one(
        "processes with memory of their own",
        "import multiprocessing\ndef work(n): return float(np.ones(n).sum())\n"
        "with multiprocessing.get_context('fork').Pool(3) as pool: L = pool.map(work, [{size} // 8 // 3] * 9)",
        loads=80_000_000,
    ),
    _one(
        "shared memory",
        "from multiprocessing import shared_memory\nL = shared_memory.SharedMemory(create=True, size={size} // 2)\n"
        "D = np.ndarray({size} // 2, np.uint8, L.buf); D[:] = 1; D.sum()",
        "D = None; L.close(); L.unlink()",
    ),
    _one(
        "a program in a shell",
        "import subprocess, sys\nL = subprocess.run([sys.executable, '-c', 'b = bytes([1]) * {size}; print(len(b))'], "
        "capture_output=True, check=True).stdout",
        loads=20_000_000,
    ),
    _one(
        "asyncio",
        "import asyncio\nasync def work(n):\n    await asyncio.sleep(0.01)\n    return np.ones(n).sum()\n"
        "L = await asyncio.gather(*(work({size} // 10) for _ in range(8)))",
    ),
    _one(
        "a task that goes on between cells",
        "import asyncio\nasync def tick():\n    for _ in range(100):\n        held = np.ones({size} // 32)\n"
        "        await asyncio.sleep(0.005)\ntask = asyncio.get_running_loop().create_task(tick())",
        "L = np.ones({size} // 16); L.sum()",
        "await task",
    ),
    _one(
        "a thread that goes on between cells",
        "import threading\ndef tick():\n    for _ in range(100):\n        held = np.ones({size} // 32); time.sleep(0.005)\n"
        "thread = threading.Thread(target=tick); thread.start()",
        "L = np.ones({size} // 16); L.sum()",
        "thread.join()",
    ),
]

LEARNING = [
    _one(
        "a training loop",
        "rng = np.random.default_rng(0)\nL = rng.random(({size} // 8 // 110, 100)); D = np.zeros(100)\nfor epoch in range(3):\n"
        "    for i in range(0, len(L), 256):\n        x = L[i:i + 256]; D -= 0.001 * x.T @ (x @ D - 1)",
    ),
    _one(
        "batches of a generator",
        "def batches():\n    for i in range(100): yield np.full(({size} // 8 // 4,), i, float)\n"
        "for D in batches(): D.sum()\nD = None",
    ),
    _one(
        "data frames",
        "import pandas as pd\nD = pd.DataFrame({{'a': np.arange({size} // 80), 'b': 1.5}})\n"
        "L = D.groupby(D.a % 100).sum(); D = pd.concat([D, D])",
        library="pandas",
        loads=60_000_000,
    ),
    _one(
        "a table read in pieces",
        "import pandas as pd\nwith open('t.csv', 'w') as file:\n    file.write('a,b\\n')\n"
        "    for _ in range({size} // 400_000): file.write('1234567,1.25\\n' * 10_000)\n"
        "L = sum(part.b.sum() for part in pd.read_csv('t.csv', chunksize=50_000))",
        "D = pd.read_csv('t.csv'); D.a.max()",
        library="pandas",
        loads=60_000_000,
    ),
    _one(
        "tables joined",
        "import pandas as pd\nn = {size} // 200\nL = pd.DataFrame({{'k': np.arange(n), 'a': 1.0}})\n"
        "D = L.merge(pd.DataFrame({{'k': np.arange(n)[::-1], 'b': 2.0}}), on='k'); len(D)",
        library="pandas",
        loads=60_000_000,
    ),
    _one(
        "figures",
        "%matplotlib inline\nimport matplotlib.pyplot as plt\nfor i in range(8):\n    plt.figure(figsize=(6, 4), dpi=100)\n"
        "    plt.imshow(np.ones((int(({size} / 100) ** 0.5),) * 2)); plt.show(); plt.close('all')",
        library="matplotlib",
        loads=70_000_000,
    ),
    _one(
        "jax",
        "import jax, jax.numpy as jnp\nf = jax.jit(lambda x: (x * 2 + 1).sum())\n"
        "for _ in range(10): L = jnp.ones({size} // 24); D = f(L).block_until_ready()",
        library="jax",
        loads=150_000_000,
    ),
    _one(
        "keras without TensorFlow",
        "import os; os.environ['KERAS_BACKEND'] = 'jax'\nimport keras\n"
        "model = keras.Sequential([keras.layers.Input((64,)), keras.layers.Dense(32, 'relu'), keras.layers.Dense(1)])\n"
        "model.compile('adam', 'mse')\nL = np.ones(({size} // 4 // 64 // 6, 64), np.float32)\n"
        "model.fit(L, L[:, :1], batch_size=4096, epochs=2, verbose=0)",
        "D = model.predict(L, batch_size=4096, verbose=0); D.shape",
        library="jax",
        loads=300_000_000,
    ),
    _one(
        "tensorflow",
        "import tensorflow as tf\nfor _ in range(10): L = tf.ones({size} // 12); D = tf.reduce_sum(L * 2)",
        "model = tf.keras.Sequential([tf.keras.layers.Input((64,)), tf.keras.layers.Dense(32, 'relu'), tf.keras.layers.Dense(1)])\n"
        "model.compile('adam', 'mse')\nL = np.ones(({size} // 4 // 64 // 6, 64), np.float32)\n"
        "model.fit(L, L[:, :1], batch_size=4096, epochs=2, verbose=0)",
        "D = tf.data.Dataset.from_tensor_slices(L).shuffle(1000).batch(512)\nsum(float(x[0, 0]) for x in D)",
        library="tensorflow",
        loads=500_000_000,
    ),
]

NOTEBOOKS = ARRAYS + OBJECTS + FILES + TOGETHER + LEARNING
