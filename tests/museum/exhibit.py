# SPDX-License-Identifier: Apache-2.0
"""What the museum shows: known ways in which other tools died, each with what Leadline must do instead.

    Exhibit("I09", "a convolution with stride 0", "tf#61902").shows(
        op("CONV_2D", [given(image), constant(filter)], [result(np.float32)], refuses="stride"))

An exhibit has views: models with inputs, and either the right outputs or words of the error. Where a model is not
enough, it has `ours`, a function that checks and says in a few words what Leadline does, and `theirs`, a program for
the peer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from harness import Case, Tensor

BUDGET = 256 << 20  # of every run here: a model that asks for more is refused, however large the machine


@dataclass
class View:
    """One model, and what must come of it: `outputs` run by run, or an error with all of the words in `refuses`."""

    name: str
    model: Callable[[], bytes]
    feeds: list[list[np.ndarray] | None] = field(default_factory=lambda: [None])
    refuses: tuple[str, ...] = ()
    outputs: list[list[np.ndarray]] | None = None
    tolerance: float = 0.0
    budget: int = BUDGET
    from_file: bool = False


@dataclass
class Exhibit:
    """A case of the museum."""

    id: str
    title: str
    source: str
    views: list[View] = field(default_factory=list)
    ours: Callable[[], str] | None = None
    theirs: str = ""
    model: Callable[[], bytes] | None = None  # whose file `theirs` gets; without it the first view's
    peer: str = "litert"  # or "tensorflow": who runs `theirs`
    arguments: tuple[str, ...] = ()  # of `theirs`, after the path of the model
    unseen: str = ""  # why there is nothing for the peer to run
    needs: tuple[str, ...] = ()  # modules without which `ours` is skipped

    def shows(self, *views: View) -> Exhibit:
        self.views += views
        return self


def view(
    name: str, model: Callable[[], bytes] | bytes, feed: Sequence | None = None, *, refuses=(), outputs=None, **more
) -> View:  # fmt: skip
    """A view of any model. `feed` has the inputs of one run, or a list for each of several runs, and so has `outputs`;
    None: the model is run as it is."""
    make = model if callable(model) else lambda: model
    several = bool(feed) and isinstance(feed[0], list)
    feeds = [None] if feed is None else list(feed) if several else [list(feed)]
    if outputs is not None and (not outputs or not isinstance(outputs[0], list)):
        outputs = [list(outputs)]
    words = (refuses,) if isinstance(refuses, str) else tuple(refuses)
    if bool(words) == (outputs is not None):
        raise ValueError(f"{name}: either outputs or words of an error")
    return View(name, make, feeds, words, outputs, **more)


def op(
    name: str, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor], *, refuses=(), expect=None, called="",
    tolerance=0.0, edit=None, budget=BUDGET, **attributes,
) -> View:  # fmt: skip
    """A view of a model of one node; `edit` changes the file as surgery.edited does."""
    case = Case(name, called or name, inputs, outputs, **attributes)

    def model() -> bytes:
        from surgery import edited

        content = case.model()
        return edited(content, edit) if edit else content

    feed = case.feeds()[0]
    return view(called or name, model, feed, refuses=refuses, outputs=expect, tolerance=tolerance, budget=budget)
