# SPDX-License-Identifier: Apache-2.0
"""One engine in a process of its own, timed by the process that writes to its standard input.

    python bench_engine.py ENGINE MODEL.tflite THREADS INPUTS.npz

ENGINE: leadline, litert, litert_reference (LiteRT without its fast kernels) or openvino. The file holds the inputs by
position: input_0, input_1, ... The process loads the model, runs it once and reports how long it took; then it answers
each line, a JSON object, with one line: {"run": N} with the milliseconds of N runs, {"save": PATH} when the outputs are
in that .npz file (output_0, ...). It stands alone, so that it runs where Leadline is not installed, and it is part of
the `leadline` program too.
"""

import json
import os
import sys
import time


def resident(key):
    """Bytes: VmRSS now, VmHWM at the peak."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(key))


class TfLite:
    """Anything with the interface of tf.lite.Interpreter."""

    def __init__(self, make, inputs):
        self.interpreter = make()
        for details, value in zip(self.interpreter.get_input_details(), inputs, strict=True):
            if tuple(details["shape"]) != value.shape:
                self.interpreter.resize_tensor_input(details["index"], value.shape)
        self.interpreter.allocate_tensors()
        for details, value in zip(self.interpreter.get_input_details(), inputs, strict=True):
            self.interpreter.set_tensor(details["index"], value)
        self.run = self.interpreter.invoke

    def outputs(self):
        return [self.interpreter.get_tensor(d["index"]) for d in self.interpreter.get_output_details()]


class OpenVino:
    """Latency settings, and float32 where the CPU would tempt OpenVINO into bfloat16."""

    def __init__(self, openvino, model, threads, inputs):
        core = openvino.Core()
        settings = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": threads,
            "NUM_STREAMS": 1,
            "INFERENCE_PRECISION_HINT": "f32",
            "ENABLE_CPU_PINNING": False,
        }
        self.request = core.compile_model(core.read_model(model), "CPU", settings).create_infer_request()
        for i, value in enumerate(inputs):
            self.request.set_input_tensor(i, openvino.Tensor(value))

    def run(self):
        self.request.infer(share_inputs=True, share_outputs=True)

    def outputs(self):
        return [tensor.data.copy() for tensor in self.request.output_tensors]


def import_engine(name):
    """A function (model, threads, inputs) -> engine, and the engine's version. Throws ImportError."""
    if name == "leadline":
        import leadline

        def make(m, t, i):
            return TfLite(lambda: leadline.lite.Interpreter(model_path=m, num_threads=t), i)

        return make, leadline.__version__
    from importlib.metadata import version

    if name in ("litert", "litert_reference"):
        from ai_edge_litert import interpreter as litert

        plain = {}
        if name == "litert_reference":
            plain["experimental_op_resolver_type"] = litert.OpResolverType.BUILTIN_REF

        def make(m, t, i):
            return TfLite(lambda: litert.Interpreter(model_path=m, num_threads=t, **plain), i)

        return make, version("ai-edge-litert")
    if name == "openvino":
        import openvino

        return lambda m, t, i: OpenVino(openvino, m, t, i), version("openvino")
    raise ImportError(f"no engine '{name}'")


def timed(engine, runs):
    """Milliseconds of each run by the clock, and of the CPUs, which other work on the machine disturbs less."""
    times, cpu_times = [], []
    for _ in range(runs):
        cpu, start = time.process_time(), time.perf_counter()
        engine.run()
        times.append(1e3 * (time.perf_counter() - start))
        cpu_times.append(1e3 * (time.process_time() - cpu))
    return {"ms": times, "cpu_ms": cpu_times, "peak_bytes": resident("VmHWM")}


def serve(answer, name, model, threads, inputs_path):
    try:
        import numpy as np
    except ImportError as error:
        return answer({"error": str(error), "missing": True})
    with np.load(inputs_path) as arrays:
        inputs = [arrays[f"input_{i}"] for i in range(len(arrays))]
    before = resident("VmRSS")
    start = time.perf_counter()
    try:
        make, version = import_engine(name)
    except ImportError as error:
        return answer({"error": str(error), "missing": True})
    imported, cpu = time.perf_counter(), time.process_time()
    try:
        engine = make(model, threads, inputs)
        engine.run()
    except Exception as error:  # whatever an engine throws is a fact about the model
        return answer({"error": f"{type(error).__name__}: {error}"})
    first, cpu = time.perf_counter(), time.process_time() - cpu
    answer({
        "engine": name, "version": version, "import_ms": 1e3 * (imported - start), "first_ms": 1e3 * (first - imported),
        "first_cpu_ms": 1e3 * cpu, "before_bytes": before, "peak_bytes": resident("VmHWM"),
    })  # fmt: skip
    for line in sys.stdin:
        request = json.loads(line)
        if "run" in request:
            answer(timed(engine, request["run"]))
        else:
            np.savez(request["save"], **{f"output_{i}": value for i, value in enumerate(engine.outputs())})
            answer({"saved": request["save"]})
    return None


def main():
    # What an engine prints must not stand between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(document):
        answers.write(json.dumps(document) + "\n")
        answers.flush()

    name, model, threads, inputs_path = sys.argv[1:5]
    serve(answer, name, model, int(threads), inputs_path)
    answers.flush()
    os._exit(0)  # without the engines' slow farewells


if __name__ == "__main__":
    main()
