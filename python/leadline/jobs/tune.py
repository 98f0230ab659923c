# SPDX-License-Identifier: Apache-2.0
"""leadline.tune: the smallest set of nodes to keep out of quantization so that a metric reaches its target."""

from __future__ import annotations

import json
import math
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
    seconds: float = 0.0  # CPU time of a run; 0: not measured
    keep: str = "float"  # what became of the kept nodes
    recipe: list[dict[str, Any]] = field(default_factory=list)  # for leadline.quantize(recipe=...)


def _trial(fields: tuple[list[str], float, int, float, str, str]) -> Trial:
    kept, value, size, seconds, keep, recipe = fields
    return Trial(kept, value, size, seconds, keep, json.loads(recipe)["rules"])


@dataclass
class Bound:
    """What samples say that took no part in calibrating, ordering and searching."""

    value: float  # of the metric, on them
    samples: int
    lowest: float  # of the worst of them; of metrics that count answers: what holds for all samples like them
    share: float  # of samples like them that have `lowest` or more, at least; 0: of metrics that count answers
    confidence: float  # with which that holds, whatever the distribution

    def __str__(self) -> str:
        text = f"{self.value:.4f} on {self.samples} samples that were held out; with {self.confidence:.0%} confidence "
        if self.share > 0:
            return text + f"{math.floor(100 * self.share)}% or more of samples like them have {self.lowest:.4f} or more"
        return text + f"{math.floor(1e4 * self.lowest) / 1e4:.4f} or more on samples like them"


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
    reached: bool  # by value and, where samples were held out, on those too
    trials: list[Trial] = field(default_factory=list)
    bound: Bound | None = None  # what is proven on samples that were held out; None: there were none
    # Trials than which no other is better in one of value, size and seconds and as good in the others.
    front: list[Trial] = field(default_factory=list)
    float_size: int = 0  # of the float model's file
    float_seconds: float = 0.0  # CPU time of a run of it; 0: not measured
    notes: list[str] = field(default_factory=list)  # what makes the result less than it seems
    debug: DebugResult | None = None  # of the model with everything quantized

    def to_json(self) -> str:
        """The recipe, as leadline.quantize takes it."""
        return json.dumps({"rules": self.recipe}, indent=1)

    def save_recipe(self, path: str | os.PathLike) -> None:
        Path(path).write_text(self.to_json() + "\n", encoding="utf-8")

    def __repr__(self) -> str:
        state = "reached" if self.reached else "not reached"
        proven = f", {self.bound.value:.6g} held out" if self.bound else ""
        return (
            f"<leadline.TuneResult: {self.value:.6g}{proven} (target {self.target:.6g}, {state}) with "
            f"{len(self.kept)} nodes kept, {len(self.trials)} trials>"
        )

    def __str__(self) -> str:
        lines = [repr(self)[1:-1].replace("leadline.TuneResult: ", "")]
        if self.bound:
            lines.append(f"Proven: {self.bound}")
        lines.append("     value       size   ms a run  kept nodes")
        lines += [
            f"{trial.value:10.5g} {trial.size:10,} {1e3 * trial.seconds:10.3g}  {len(trial.kept)} as {trial.keep}"
            for trial in self.front
        ]
        lines.append(f"{'float':>10} {self.float_size:10,} {1e3 * self.float_seconds:10.3g}")
        return "\n".join([*lines, *self.notes])


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
    max_seconds: float = 0.0,
    held_out: Any = 0.25,
    front_trials: int = 4,
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

    First the parts of the network that cost most at its outputs are kept, without what is not needed of them. If they
    are not enough, the layer that loses most signal by itself is kept alone, then with the nodes that read it, those
    that read them and so on (4 steps): weights that spoil a layer are cured by keeping that layer, but a range that is
    too wide for 8 bits travels on, and whatever rounds to it has to be kept too. If that is not enough, layers are
    taken in the order of the signal they lose, and how many are needed is found by bisection. In the end each kept node
    is given back if the target holds without it. No set is proven to be the smallest: that would take 2^layers trials.
    What is found is measured on samples that were held out; when it misses the target there, the search goes on with a
    harder one.

    Args:
      dataset: samples for calibration, or their path, as leadline.calibrate takes them. They are gone through more than
        once, unless metric is a function and debug_dataset is given: not a generator.
      metric: larger is better; gets the bytes of a quantized model. Or agreement with the float model on the samples:
        "cosine" (of the angle between their outputs), "same_top" (share of rows with the same largest value) or "kl"
        (exp(-d), d the mean Kullback-Leibler divergence of rows as probabilities). Or "accuracy" on their labels.
      keep: what becomes of the nodes that are kept: "float", "int16x8", or another mode.
      labels: what the model should answer, as leadline.evaluate takes them.
      debug_dataset: samples to order the layers by; by default the same.
      max_seconds: search no longer and take the best of what was found; 0: as long as it takes.
      held_out: samples to prove the result on, or the share of the given ones that is held out of calibration and
        search for it, where they are 8 at least; 0: prove nothing. A function as metric proves what it measures itself.
      front_trials: measure so many models beside those of the search for `front`; none when metric is a function.
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
    share = float(held_out) if isinstance(held_out, (int, float)) else 0.0
    proof = None
    if not isinstance(held_out, (int, float)):
        if metric == "accuracy":
            raise InvalidArgumentError("held_out: labels are for `dataset`; give the share of it to hold out")
        proof = sample_source(held_out, None, model, budget=budget, **pictures)
    told = (lambda trial: progress(_trial(trial))) if callable(progress) else None
    goal = float("nan") if target is None else float(target)
    measured = "cosine" if metric is None else metric
    mode_of_kept = as_mode(keep, "keep")
    job = TuneJob(
        model, options, mode_of_kept, goal, max_trials, measured, told, float(max_seconds), share, front_trials
    )
    yield lambda: job.plan(source, others, proof)
    titles = {"calibrate": "Calibrating", "trial": "Tuning"}
    with observing(False if callable(progress) else progress, **titles) as observer:
        found = job.run(source, others, proof, observer)
    warn_of(found["findings"], 3)
    result = TuneResult(
        found["content"],
        json.loads(found["recipe"])["rules"],
        found["kept"],
        found["causes"],
        found["value"],
        goal,
        found["reached"],
        [_trial(trial) for trial in found["trials"]],
        None if found["bound"] is None else Bound(*found["bound"]),
        [_trial(trial) for trial in found["front"]],
        found["float_bytes"],
        found["float_seconds"],
        found["notes"],
        None if found["debug"] is None else DebugResult(found["debug"]),
    )
    if recipe is not None:
        result.save_recipe(recipe)
    return result
