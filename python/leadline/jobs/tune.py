# SPDX-License-Identifier: Apache-2.0
"""leadline.tune: the smallest set of nodes to keep out of quantization so that a metric reaches its target."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leadline import _leadline
from leadline._leadline import Budget, InvalidArgumentError, JobPlan, Model
from leadline._native.arguments import as_budget, as_mode, as_model
from leadline.jobs.calibrate import run_calibration
from leadline.jobs.debug import DebugResult, debug
from leadline.jobs.job import planned_by
from leadline.jobs.progress import progress_of, tell
from leadline.jobs.quantize import equalized, make_options, quantize

_STEPS = 4  # from a layer to nodes that read it, when a range travels on


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


def _plan(
    float_model,
    dataset=None,
    metric="cosine",
    target=None,
    mode="int8",
    *,
    keep="float",
    debug_dataset=None,
    recipe=None,
    max_trials=64,
    budget=None,
    progress=None,
    **settings,
) -> JobPlan:
    budget = as_budget(budget)
    options = make_options(mode, budget=budget, **settings)
    agreement = metric if isinstance(metric, str) else None
    return _leadline.TuneJob(
        as_model(float_model, budget), options, as_mode(keep, "keep"), agreement, max_trials
    ).plan()


@planned_by(_plan)
def tune(
    float_model: Model | bytes | str | os.PathLike,
    dataset: Any,
    metric: Callable[[bytes], float] | str,
    target: float,
    mode: str = "int8",
    *,
    keep: str = "float",
    debug_dataset: Any = None,
    recipe: str | os.PathLike | None = None,
    max_trials: int = 64,
    budget: Budget | int | str | None = None,
    progress: bool | Callable[[Trial], None] | None = None,
    **settings: Any,
) -> TuneResult:
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
      dataset: samples for calibration. It is gone through once, or twice without debug_dataset: a function or a list.
      metric: larger is better; gets the bytes of a quantized model. Or agreement with the float model on the samples:
        "cosine" (of the angle between their outputs) or "same_top" (share of rows with the same largest value).
      keep: what becomes of the nodes that are kept: "float", "int16x8", or another mode.
      debug_dataset: samples to order the layers by; by default the same.
      recipe: where to write the recipe as JSON.
      progress: called with each Trial; None, True and False show a bar as in leadline.calibrate.
      settings: more arguments of leadline.quantize.
    """
    if "recipe" in settings or "calibration" in settings or "representative_dataset" in settings:
        raise InvalidArgumentError("tune makes recipe and calibration itself")
    budget = as_budget(budget)
    model = as_model(float_model, budget)
    agreement = metric if isinstance(metric, str) else None
    options = make_options(mode, budget=budget, **settings)
    _leadline.TuneJob(model, options, as_mode(keep, "keep"), agreement, max_trials).admit()
    if settings.pop("equalize", False):
        model = equalized(model, budget)  # once; layers are compared with it too
    if isinstance(metric, str):
        metric = _agreement(metric, model, dataset)
    integers = any(_leadline.is_integer(as_mode(name, argument)) for argument, name in (("mode", mode), ("keep", keep)))
    method = settings.get("method", "min_max")
    bar = False if callable(progress) else progress
    calibration = None
    if integers:
        calibration = run_calibration(model, dataset, method, budget=budget, progress=bar, admitted=True)
    arguments = {"calibration": calibration, "budget": budget, "progress": False, **settings}
    search = _Search(lambda rules: quantize(model, mode, recipe=rules, **arguments), metric, target, keep, max_trials)
    result = None
    readers: dict[str, list[str]] = {}
    kept: list[str] = []
    with progress_of(bar, "Tuning") as report:
        search.progress = progress if callable(progress) else lambda trial: tell(report, len(search.trials), max_trials)
        if search.measure([]).value < target:
            samples = dataset if debug_dataset is None else debug_dataset
            result = debug(model, search.content([]), samples, budget=budget, progress=False)
            order = _order(result, model)
            readers = _readers(model)
            kept = search.grow(order, readers) or search.bisect(order)
            kept = search.give_back(kept)
        best = search.measure(kept)
    found = TuneResult(
        search.content(kept),
        search.rules(kept),
        kept,
        [name for name in kept if not any(name in readers.get(other, ()) for other in kept)],
        best.value,
        target,
        best.value >= target,
        search.trials,
        result,
    )
    if recipe is not None:
        found.save_recipe(recipe)
    return found


def _agreement(name: str, model: Model, dataset: Any) -> Callable[[bytes], float]:
    """How a quantized model agrees with its float model: the worst of its outputs."""
    cosine = _leadline.parse_agreement_metric(name) == _leadline.AgreementMetric.COSINE

    def measure(content: bytes) -> float:
        found = debug(model, content, dataset, own_error=False, worst_channels=0, histograms=0, progress=False)
        if cosine:
            return min(output["accumulated"]["cosine"] for output in found.outputs)
        return min(output["same_argmax"] for output in found.outputs)

    return measure


def _order(result: DebugResult, model: Model) -> list[str]:
    """Names (in the float model) of the layers that can be kept, those that lose most by themselves first."""
    layers = [layer for layer in result.layers if layer["own"] and layer["float_node"] >= 0 and layer["quantized"]]
    layers.sort(key=lambda layer: -layer["own"]["lost_signal"])
    names = []
    for layer in layers:
        tensors = model.subgraph(layer["subgraph"]).tensors
        name = tensors[layer["float_tensor"]].name
        if name not in names:
            names.append(name)
    return names


def _readers(model: Model) -> dict[str, list[str]]:
    """For each tensor the results of the nodes that read it, by names."""
    result: dict[str, list[str]] = {}
    for s in range(model.subgraph_count):
        subgraph = model.subgraph(s)
        for node in subgraph.nodes:
            for source in node.inputs:
                if source >= 0 and node.outputs and not subgraph.tensors[source].constant:
                    name = subgraph.tensors[node.outputs[0]].name
                    result.setdefault(subgraph.tensors[source].name, []).append(name)
    return result


class _Search:
    def __init__(self, quantize, metric, target, keep, max_trials) -> None:
        self._quantize = quantize
        self._metric = metric
        self._target = target
        self._keep = keep
        self._max_trials = max_trials
        self.progress: Callable[[Trial], object] = lambda trial: None
        self._known: dict[frozenset, Trial] = {}
        self._last: tuple[frozenset, bytes] | None = None
        self.trials: list[Trial] = []

    def rules(self, kept: list[str]) -> list[dict[str, Any]]:
        return [{"name": f"^{re.escape(name)}$", "mode": self._keep} for name in kept]

    def content(self, kept: list[str]) -> bytes:
        key = frozenset(kept)
        if self._last is None or self._last[0] != key:
            self._last = key, self._quantize(self.rules(kept))
        return self._last[1]

    def measure(self, kept: list[str]) -> Trial:
        key = frozenset(kept)
        if key not in self._known:
            content = self.content(kept)
            trial = Trial(list(kept), float(self._metric(content)), len(content))
            self._known[key] = trial
            self.trials.append(trial)
            self.progress(trial)
        return self._known[key]

    def enough(self, kept: list[str]) -> bool:
        return self.measure(kept).value >= self._target

    def grow(self, order: list[str], readers: dict[str, list[str]]) -> list[str]:
        """The worst layer, with as many steps of its readers as are enough; nothing when none are."""
        kept = edge = order[:1]
        for _ in range(_STEPS + 1):
            if edge and len(self.trials) < self._max_trials and self.enough(kept):
                return kept
            edge = list(dict.fromkeys(name for e in edge for name in readers.get(e, ()) if name not in kept))
            if not edge:
                break
            kept = kept + edge
        return []

    def bisect(self, order: list[str]) -> list[str]:
        """The shortest beginning of `order` that is enough; all of it when nothing is."""
        count = 1
        while count < len(order) and not self.enough(order[:count]):
            if len(self.trials) >= self._max_trials:
                return order
            count *= 2
        low, high = count // 2, min(count, len(order))  # `low` is not enough
        if not self.enough(order[:high]):
            return order
        while low + 1 < high and len(self.trials) < self._max_trials:
            middle = (low + high) // 2
            if self.enough(order[:middle]):
                high = middle
            else:
                low = middle
        return order[:high]

    def give_back(self, kept: list[str]) -> list[str]:
        """Without the nodes that are not needed, the least suspected first."""
        if not self.enough(kept):
            return kept
        for name in reversed(list(kept)):
            if len(self.trials) >= self._max_trials:
                break
            fewer = [other for other in kept if other != name]
            if self.enough(fewer):
                kept = fewer
        return kept
