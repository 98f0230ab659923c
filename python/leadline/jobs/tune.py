# SPDX-License-Identifier: Apache-2.0
"""leadline.tune: the smallest set of nodes to keep out of quantization so that a metric reaches its target."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leadline._leadline import Budget, InvalidArgumentError, Model, TuneJob
from leadline._native.arguments import as_budget, as_mode, as_model, as_threads
from leadline.jobs.debug import DebugResult
from leadline.jobs.job import Job, Planned
from leadline.jobs.progress import observing
from leadline.jobs.quantize import make_options
from leadline.jobs.samples import PICTURE_ARGUMENTS, sample_source, warn_of


@dataclass
class Trial:
    """One quantized model that was measured."""

    kept: list[str]
    value: float
    size: int


@dataclass
class TuneResult:
    """What tune() found."""

    __module__ = "leadline"  # where users find it

    content: bytes  # the quantized model
    recipe: list[dict[str, Any]]  # for leadline.quantize(recipe=...)
    kept: list[str]  # names of the tensors whose nodes are not quantized as the others
    causes: list[str]  # those of them that read from no other: the layers to look at; the rest carries their ranges on
    value: float  # of the metric
    target: float
    reached: bool
    trials: list[Trial] = field(default_factory=list)
    debug: DebugResult | None = None  # of the model with everything quantized

    def to_json(self) -> str:
        """The recipe, as leadline.quantize takes it."""
        return json.dumps({"rules": self.recipe}, indent=1)

    def save_recipe(self, path: str | os.PathLike) -> None:
        Path(path).write_text(self.to_json() + "\n", encoding="utf-8")

    def __repr__(self) -> str:
        state = "reached" if self.reached else "not reached"
        return (
            f"<leadline.TuneResult: {self.value:.6g} (target {self.target:.6g}, {state}) with {len(self.kept)} nodes "
            f"kept, {len(self.trials)} trials>"
        )


@Job
def tune(
    float_model: Model | bytes | str | os.PathLike,
    dataset: Any,
    metric: Callable[[bytes], float] | str,
    target: float,
    mode: str = "int8",
    *,
    keep: str = "float",
    labels: Any = None,
    debug_dataset: Any = None,
    recipe: str | os.PathLike | None = None,
    max_trials: int = 64,
    budget: Budget | int | str | None = None,
    num_threads: int | None = None,
    progress: bool | Callable[[Trial], None] | None = None,
    timeout: float | None = None,
    **settings: Any,
) -> Planned[TuneResult]:
    """Searches the smallest set of nodes to keep in float (or int16) so that metric(quantized model) >= target.

        def accuracy(content):
            interpreter = leadline.lite.Interpreter(model_content=content)
            ...
        print(leadline.tune.plan("model.tflite", samples, accuracy))  # what it will take, phase by phase
        result = leadline.tune("model.tflite", samples, accuracy, target=0.91)
        result.save_recipe("recipe.json")

    First the layer that loses most signal by itself is kept alone, then with the nodes that read it, those that read
    them and so on (4 steps): weights that spoil a layer are cured by keeping that layer, but a range that is too wide
    for 8 bits travels on, and whatever rounds to it has to be kept too. If that is not enough, layers are taken in the
    order of the signal they lose, and how many are needed is found by bisection. In the end each kept node is given
    back if the target holds without it. No set is proven to be the smallest: that would take 2^layers trials.

    Args:
      dataset: samples for calibration, or their path, as leadline.calibrate takes them. They are gone through more than
        once, unless metric is a function and debug_dataset is given: not a generator.
      metric: larger is better; gets the bytes of a quantized model. Or agreement with the float model on the samples:
        "cosine" (of the angle between their outputs) or "same_top" (share of rows with the same largest value). Or
        "accuracy" on their labels.
      keep: what becomes of the nodes that are kept: "float", "int16x8", or another mode.
      labels: what the model should answer, as leadline.evaluate takes them.
      debug_dataset: samples to order the layers by; by default the same.
      recipe: where to write the recipe as JSON.
      num_threads: threads of one run; None: as many as CPUs.
      progress: called with each Trial; None, True and False show a bar as in leadline.calibrate.
      timeout: as in leadline.calibrate.
      settings: more arguments of leadline.quantize, those for pictures included.
    """
    if "recipe" in settings or "calibration" in settings or "representative_dataset" in settings:
        raise InvalidArgumentError("tune makes recipe and calibration itself")
    del timeout  # kept by Job
    budget = as_budget(budget)
    model = as_model(float_model, budget)
    pictures = {name: settings.pop(name) for name in PICTURE_ARGUMENTS if name in settings}
    options = make_options(mode, budget=budget, num_threads=as_threads(num_threads), **settings)
    source = sample_source(dataset, labels, model, budget=budget, **pictures)
    others = None if debug_dataset is None else sample_source(debug_dataset, None, model, budget=budget, **pictures)
    told = (lambda trial: progress(Trial(*trial))) if callable(progress) else None
    goal = float("nan") if target is None else float(target)
    job = TuneJob(model, options, as_mode(keep, "keep"), goal, max_trials, "cosine" if metric is None else metric, told)
    yield lambda: job.plan(source, others)
    titles = {"calibrate": "Calibrating", "trial": "Tuning"}
    with observing(False if callable(progress) else progress, **titles) as observer:
        found = job.run(source, others, observer)
    warn_of(found["findings"], 3)
    result = TuneResult(
        found["content"],
        json.loads(found["recipe"])["rules"],
        found["kept"],
        found["causes"],
        found["value"],
        goal,
        found["reached"],
        [Trial(*trial) for trial in found["trials"]],
        None if found["debug"] is None else DebugResult(found["debug"]),
    )
    if recipe is not None:
        result.save_recipe(recipe)
    return result
