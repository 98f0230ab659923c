# SPDX-License-Identifier: Apache-2.0
"""The main job in one minute: plan a model before it runs, run it, compare the plan with the count, refuse a budget.

`make demo` builds Leadline and runs this on a model made on the spot (build/release/sample.tflite).
"""

import pathlib
import time

import numpy as np

import leadline
from leadline import lite

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODEL = ROOT / "build" / "release" / "sample.tflite"
REPORT = ROOT / "reports" / "plan.html"


def main() -> None:
    print(f"Leadline {leadline.__version__}, model {MODEL.relative_to(ROOT)} ({MODEL.stat().st_size} bytes)\n")

    interpreter = lite.Interpreter(model_path=str(MODEL))
    plan = interpreter.plan()
    print("1. Before anything is allocated, the plan:\n")
    print(plan)

    interpreter.allocate_tensors()
    image = interpreter.get_input_details()[0]
    interpreter.set_tensor(image["index"], np.random.default_rng(0).random(image["shape"], dtype=np.float32))
    begin = time.perf_counter()
    interpreter.invoke()
    elapsed = 1e3 * (time.perf_counter() - begin)
    result = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    print(f"2. One run took {elapsed:.2f} ms; the likeliest class is {int(result.argmax())} of {result.size}.")
    print(f"   Planned peak {plan.peak_bytes} bytes, counted peak {interpreter.counted_peak_bytes()} bytes.\n")

    print("3. The same model with a budget of 100 KB:\n")
    try:
        lite.Interpreter(model_path=str(MODEL), budget="100KB").allocate_tensors()
    except leadline.BudgetError as refusal:
        print(f"   BudgetError: {refusal}\n")

    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(plan.to_html("sample.tflite"))
    print(f"4. The picture of the plan is in {REPORT.relative_to(ROOT)}: open it in a browser.")


if __name__ == "__main__":
    main()
