# SPDX-License-Identifier: Apache-2.0
"""What quantization did to a model: leadline.debug."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from leadline import _leadline
from leadline._leadline import Budget, DebugJob, InvalidArgumentError
from leadline._native.arguments import as_budget, as_model, as_threads
from leadline.jobs.job import Job, Planned
from leadline.jobs.progress import observing
from leadline.jobs.samples import sample_source


class DebugSuggestion(dict[str, Any]):
    """A change that was made, quantized and measured; its keys are attributes too: `kind`, `what`, `recipe` (for
    leadline.quantize), `recalibrate`, `before` and `after` (`cosine`, `same_argmax`, `file_bytes`, `seconds`),
    `samples`, `held_out`."""

    __module__ = "leadline"  # where users find it

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class DebugResult:
    """What debugging found, as data: `layers`, `outputs`, `suspects`, `regions`, `suggestions`, each a list of dicts.

    A layer has the error it adds by itself (`own`: against the float node on the same inputs) and all error so far
    (`accumulated`: against the float model). `rmse_over_scale` counts in quantization steps: rounding alone costs
    1/sqrt(12) = 0.289 of them.
    """

    __module__ = "leadline"  # where users find it

    def __init__(self, native: _leadline.DebugResult, run: _leadline.DebugRun | None = None):
        self._native = native
        self._run = run or _leadline.DebugRun()
        self._data: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """All of it as dicts and lists."""
        if self._data is None:
            self._data = json.loads(self._native.to_json())
        return self._data

    @property
    def plan(self) -> dict[str, Any]:
        """What memory it was planned to take: `peak_bytes`, and by category."""
        return self.to_dict()["plan"]

    @property
    def layers(self) -> list[dict[str, Any]]:
        return self.to_dict()["layers"]

    @property
    def outputs(self) -> list[dict[str, Any]]:
        return self.to_dict()["outputs"]

    @property
    def suspects(self) -> list[dict[str, Any]]:
        """The layers that deserve a look, the worst first, with `why` and `try_this`."""
        return self.to_dict()["suspects"]

    @property
    def regions(self) -> list[dict[str, Any]]:
        """Parts of the network by their `effect`: the share of the outputs' error that goes when they compute in float.
        Measured where the model lost something."""
        return self.to_dict()["regions"]

    @property
    def suggestions(self) -> list[DebugSuggestion]:
        """Changes that were tried and help, the best first: leadline.quantize(..., recipe=suggestions[0].recipe)."""
        return [DebugSuggestion(suggestion) for suggestion in self.to_dict()["suggestions"]]

    @property
    def verdict(self) -> str:
        return self.to_dict()["verdict"]

    @property
    def samples(self) -> int:
        return self.to_dict()["samples"]

    def to_json(self) -> str:
        return self._native.to_json()

    def to_csv(self) -> str:
        """One line per layer."""
        return self._native.to_csv()

    def to_node_data(self) -> str:
        """Error, effect and bytes of each node, for Model Explorer to show over the quantized model's graph."""
        return self._native.to_node_data()

    def to_html(self) -> str:
        """One self-contained page: verdict, suspects, error along the network, all layers, histograms."""
        return self._native.to_html(self._run)

    def save(self, path: str | os.PathLike) -> None:
        """Writes .html, .json, .csv or .txt, as the name says."""
        path = Path(path)
        forms = {".html": self.to_html, ".json": self.to_json, ".csv": self.to_csv, ".txt": self._native.to_text}
        if path.suffix not in forms:
            raise InvalidArgumentError(f"'{path}' should end with one of {', '.join(forms)}")
        path.write_text(forms[path.suffix](), encoding="utf-8")

    def to_text(self, opened: str = "") -> str:
        """For a terminal. Layers of equal blocks are one row, but those with `opened` in their names."""
        return self._native.to_text(opened)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return (
            f"<leadline.DebugResult: {self.samples} samples, {len(self.layers)} layers, {len(self.suspects)} suspects>"
        )

    def _repr_html_(self) -> str:
        return self._native.to_notebook_html(self._run)


@Job
def debug(
    float_model,
    quantized_model,
    dataset,
    *,
    own_error: bool = True,
    equalized: bool = False,
    effects: bool = True,
    suggestions: bool = True,
    num_threads: int | None = None,
    budget: Budget | int | str | None = None,
    worst_channels: int = 8,
    histograms: int = 16,
    progress: bool | Callable[[int, int | None], object] | None = None,
    timeout: float | None = None,
    **pictures: Any,
) -> Planned[DebugResult]:
    """Compares a quantized model with its float model on samples, layer by layer.

        print(leadline.debug.plan("model.tflite", "model_int8.tflite"))  # what it will take, phase by phase
        result = leadline.debug("model.tflite", "model_int8.tflite", [[image] for image in images])
        print(result.verdict)
        result.save("report.html")
        content = leadline.quantize("model.tflite", "int8", images, recipe=result.suggestions[0].recipe)

    Both models run side by side in one planned graph, one node at a time in memory. Every quantization mode will do.

    Args:
      float_model, quantized_model: .tflite files, their bytes, or leadline.Models.
      dataset: samples for the float model, or their path, as leadline.calibrate takes them.
      own_error: also report what each layer adds by itself, which takes a second run of each float node.
      equalized: the quantized model was made with equalize=True, which scales the channels of float layers before they
        are quantized: layers are compared with those. Otherwise that scaling would look like an error.
      effects: of a model that lost something, measure what parts of the network cost at its outputs, on up to 32 of
        the samples, which are kept (32 MB at most).
      suggestions: and change how it is quantized, in all ways that may help, quantize and measure again.
      progress, timeout, pictures: as in leadline.calibrate.
    """
    del timeout  # kept by Job
    start = time.perf_counter()
    budget = as_budget(budget)
    reference, quantized = as_model(float_model, budget), as_model(quantized_model, budget)
    source = sample_source(dataset, None, reference, budget=budget, **pictures)
    job = DebugJob(
        reference,
        quantized,
        num_threads=as_threads(num_threads),
        budget=budget,
        own_error=own_error,
        worst_channels=worst_channels,
        histograms=histograms,
        equalized=equalized,
        effects=effects,
        suggestions=suggestions,
    )
    yield lambda: job.plan(source)
    with observing(progress, compare="Debugging") as observer:
        found, counted_bytes = job.run(source, observer)
    run = _leadline.DebugRun(
        _path_of(float_model),
        _path_of(quantized_model),
        seconds=time.perf_counter() - start,
        counted_bytes=counted_bytes,
    )
    return DebugResult(found, run)


def _path_of(model) -> str:
    """The path that a model was given by, or nothing."""
    return os.fsdecode(model) if isinstance(model, (str, os.PathLike)) else ""
