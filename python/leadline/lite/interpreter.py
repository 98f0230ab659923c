# SPDX-License-Identifier: Apache-2.0
"""tf.lite's Interpreter and SignatureRunner."""

from __future__ import annotations

import enum
import operator
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline import _leadline
from leadline._leadline import (
    Budget,
    BudgetError,
    Error,
    InvalidArgumentError,
    Model,
    Plan,
    UnsupportedError,
    time_limit,
)
from leadline._native.arguments import as_budget, as_threads
from leadline._native.session import Session, described, op_details, tensor_details
from leadline._native.tensors import Array, shown
from leadline.lite import metrics
from leadline.lite.delegates import Delegate, DelegateError, check_registerers, load_delegate

if TYPE_CHECKING:
    from leadline.lite.profile import Profile
    from leadline.lite.wrapper import InterpreterWrapper

__all__ = [
    "Delegate",
    "Interpreter",
    "InterpreterWithCustomOps",
    "OpResolverType",
    "SignatureRunner",
    "load_delegate",
]


# The graph of some thousand nodes: what a refusal may take to say more than that the file does not fit.
_REFUSAL_BYTES = 1 << 20


def _with_total(
    error: BudgetError, load: Callable[[Budget | None], Model], given: Budget | None, mapped_bytes: int | None
) -> BudgetError:
    """The refusal of a model whose file alone does not fit, with what the whole model needs. `mapped_bytes` is the size
    of a file that is mapped or borrowed, and takes no memory until it is read; None when it would be copied."""
    budget = given if given is not None else Budget.machine_default()
    if mapped_bytes is None:
        return error
    try:  # what reading takes besides has to fit into what the budget has left
        plan = Interpreter(model=load(Budget(mapped_bytes + max(budget.available, _REFUSAL_BYTES)))).plan()
    except (Error, OSError):  # no plan without sizes, or none at all
        return error
    size_text = budget.format
    rows = [f"\n  {name:<16} {size:>14} bytes  {size_text(size):>10}" for name, size in plan.categories.items()]
    text = f"{error}. All in all this model needs {size_text(plan.peak_bytes)} ({plan.peak_bytes} bytes):"
    full = BudgetError(text + "".join(rows) + "\nRaise the budget, use a smaller input or fewer threads.")
    full.needed, full.limit = plan.peak_bytes, error.limit
    return full


@enum.unique
class OpResolverType(enum.Enum):
    """tf.lite's choices of kernels. Leadline has one set of kernels and no delegates, so AUTO, BUILTIN and
    BUILTIN_WITHOUT_DEFAULT_DELEGATES mean the same. BUILTIN_REF runs the graph as it is in the file: no passes merge
    nodes, and float convolutions add up plainly, without Winograd's method."""

    __module__ = "leadline.lite"  # where users find it

    AUTO = 0
    BUILTIN = 1
    BUILTIN_REF = 2
    BUILTIN_WITHOUT_DEFAULT_DELEGATES = 3


def _device(device: str | None, on_missing: str) -> str:
    policies = {"error": _leadline.MissingDevice.ERROR, "fallback": _leadline.MissingDevice.FALLBACK}
    if on_missing not in policies:
        raise InvalidArgumentError(f'on_missing should be "error" or "fallback"; got {on_missing!r}')
    if device is None:
        return "/CPU:0"
    if not isinstance(device, str):
        raise InvalidArgumentError(f"device should be a name such as '/CPU:0'; got {type(device).__name__}")
    name, message = _leadline.choose_device(device, policies[on_missing])
    if message:
        import warnings

        warnings.warn(message, RuntimeWarning, stacklevel=3)
    return name


class SignatureRunner:
    """Runs one signature of a model by the names of its inputs. Made by Interpreter.get_signature_runner().

    runner = interpreter.get_signature_runner("encode")
    result = runner(tokens=np.array([[1, 2, 3]], np.int32))
    print(result["state"])
    """

    __module__ = "leadline.lite"  # where users find it

    def __init__(self, interpreter: Interpreter, signature_key: str):
        signature = interpreter._signatures.get(signature_key)
        if signature is None:
            raise InvalidArgumentError(f'Invalid signature_key provided: "{signature_key}".')
        self._signature_key = signature_key
        self._session = interpreter._session(signature.subgraph)
        self._inputs: dict[str, int] = dict(sorted(signature.inputs.items()))
        self._outputs: dict[str, int] = dict(sorted(signature.outputs.items()))

    def __call__(self, **inputs: Any) -> dict[str, Array]:
        """Resizes the inputs to the given arrays, runs, and returns the outputs by name."""
        if len(inputs) != len(self._inputs):
            raise InvalidArgumentError(
                "Invalid number of inputs provided for running a SignatureDef, "
                f"expected {len(self._inputs)} vs provided {len(inputs)}"
            )
        for name in inputs:
            if name not in self._inputs:
                known = ", ".join(map(shown, self._inputs))
                raise InvalidArgumentError(f"Invalid Input name ({name}) for SignatureDef; its inputs are {known}")
        session = self._session
        with session.lock:
            for name, value in inputs.items():
                session.resize(self._inputs[name], np.shape(value), strict=False)
            session.allocate()
            for name, value in inputs.items():
                session.set(self._inputs[name], value)
            session.invoke()
            return {name: session.get(index) for name, index in self._outputs.items()}

    def get_input_details(self) -> dict[str, dict[str, Any]]:
        """Details of each input by its name in the signature; see Interpreter.get_input_details()."""
        return {name: tensor_details(self._session, index) for name, index in self._inputs.items()}

    def get_output_details(self) -> dict[str, dict[str, Any]]:
        """Details of each output by its name in the signature."""
        return {name: tensor_details(self._session, index) for name, index in self._outputs.items()}

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(map(shown, names)) for names in (self._inputs, self._outputs))
        return f"<leadline.lite.SignatureRunner {shown(self._signature_key)}: {inputs} -> {outputs}>"


class Interpreter:
    """Runs a .tflite model.

        interpreter = Interpreter("model.tflite", budget="200MB")
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], image)
        interpreter.invoke()
        result = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])

    Calls from several threads take turns; different interpreters run in parallel. Python's lock is free while a model
    loads, plans or runs.
    """

    __module__ = "leadline.lite"  # where users find it

    def __init__(
        self,
        model_path: str | os.PathLike[str] | None = None,
        model_content: bytes | None = None,
        experimental_delegates: Sequence[Any] | None = None,
        num_threads: int | None = None,
        experimental_op_resolver_type: Any = OpResolverType.AUTO,
        experimental_preserve_all_tensors: bool = False,
        experimental_disable_delegate_clustering: bool = False,
        experimental_default_delegate_latest_features: bool = False,
        experimental_compress_quantization_zero_points: bool = False,
        experimental_disable_delegate_node_fusion: bool = False,
        experimental_force_delegate_node_profiling: bool = False,
        *,
        budget: Budget | int | str | None = None,
        model: Model | None = None,
        device: str | None = None,
        on_missing: str = "error",
        disabled_passes: Sequence[str] = (),
    ):
        """Loads and verifies the model.

        Args:
          model_path: a .tflite file. It is mapped, not copied, and must not change while the interpreter lives.
          model_content: the bytes of one. `bytes` are borrowed, other buffers copied.
          experimental_delegates: must be empty; Leadline runs on the CPU.
          num_threads: threads for one invoke(). None or -1: as many as there are usable CPUs.
          experimental_op_resolver_type: an OpResolverType. BUILTIN_REF: float convolutions add up plainly, as the
            reference kernels do, also where Winograd's method is faster, and no nodes are merged. All others mean the
            same.
          experimental_preserve_all_tensors: every intermediate tensor keeps memory of its own; without it, get_tensor()
            computes it again.
          experimental_disable_delegate_clustering, experimental_default_delegate_latest_features,
          experimental_force_delegate_node_profiling: accepted; they concern delegates.
          experimental_compress_quantization_zero_points: details have one zero point where all of a tensor are equal.
          experimental_disable_delegate_node_fusion: the same as disabled_passes=["all"].
          budget: the most memory to take: bytes, a text such as "200MB", "1.5GiB" or "50%", or a Budget that
            several interpreters share. None: LEADLINE_MEMORY, or 90 % of what the machine leaves now.
          model: a leadline.Model to share with other interpreters, instead of model_path or model_content.
          device: where to run, as leadline.devices() names it: "/CPU:0" (also what None means), "/GPU:0".
          on_missing: when that device does not exist or has no kernels yet: "error", or "fallback" to run on "/CPU:0"
            with a RuntimeWarning. Both say which devices there are.
          disabled_passes: names of passes (leadline.list_passes()) that do not merge nodes into faster ones, or "all":
            the graph runs as it is in the file. experimental_preserve_all_tensors means the same.

        Raises:
          ValueError: the file or an argument is bad (IoError, InvalidModelError, InvalidArgumentError, ...).
          BudgetError: the file alone is larger than the budget.
        """
        # An enum of tf.lite or ai_edge_litert means the same.
        resolver: str | None = getattr(experimental_op_resolver_type, "name", None)
        if resolver not in OpResolverType.__members__:
            raise InvalidArgumentError(f"Unrecognized passed in op resolver type: {experimental_op_resolver_type}")
        if experimental_delegates:
            raise DelegateError("experimental_delegates: Leadline runs models on the CPU and does not take delegates")
        reference = resolver == "BUILTIN_REF"
        threads = as_threads(num_threads)
        self._device = _device(device, on_missing)
        # What only this interpreter may take, when the model is shared and charged elsewhere.
        self._own_budget = None if model is None else as_budget(budget)
        self._model = self._load(model_path, model_content, model, budget)
        self._signatures = {signature.key: signature for signature in self._model.signatures}
        self._options: dict[str, Any] = {
            "num_threads": threads,
            "budget": self._own_budget,
            "preserve_all_tensors": bool(experimental_preserve_all_tensors),
            "device": self._device,
            "winograd": not reference,
            "disabled_passes": ["all"] if reference or experimental_disable_delegate_node_fusion else disabled_passes,
        }
        self._compress_zero_points = bool(experimental_compress_quantization_zero_points)
        self._main = Session(self._model, 0, self._options)
        self._sessions = {0: self._main}
        self._profiled = False
        _leadline.remember_object(self)
        self._metrics = metrics.TFLiteMetrics()
        self._metrics.increase_counter_interpreter_creation()

    @property
    def device(self) -> str:
        """Where the model runs: "/CPU:0"."""
        return self._device

    @staticmethod
    def _load(path: Any, content: Any, model: Model | None, budget: Budget | int | str | None) -> Model:
        if model is not None:
            if path or content:
                raise InvalidArgumentError("Can't both provide `model` and `model_path` or `model_content`")
            if not isinstance(model, Model):
                raise InvalidArgumentError(f"model should be a leadline.Model; got {type(model).__name__}")
            return model
        if path and content:
            raise InvalidArgumentError("Can't both provide `model_path` and `model_content`")
        if not path and not content:
            raise InvalidArgumentError("`model_path` or `model_content` must be specified.")

        def load(budget: Budget | None) -> Model:
            return Model.load(os.fspath(path), budget) if path else Model.from_bytes(content, budget)

        given = as_budget(budget)
        try:
            return load(given)
        except BudgetError as error:
            borrowed = os.path.getsize(path) if path else len(content) if isinstance(content, bytes) else None
            raise _with_total(error, load, given, borrowed) from None

    def _session(self, subgraph: int) -> Session:
        with self._main.lock:
            if subgraph not in self._sessions:
                self._sessions[subgraph] = Session(self._model, subgraph, self._options, self._main)
            return self._sessions[subgraph]

    def _session_of(self, subgraph_index: int) -> Session:
        """The session of a subgraph that a caller named."""
        subgraph = operator.index(subgraph_index)
        if not 0 <= subgraph < self._model.subgraph_count:
            raise InvalidArgumentError(
                f"subgraph_index is out of range: {subgraph} for the model, which has "
                f"{self._model.subgraph_count} subgraphs."
            )
        return self._session(subgraph)

    # Tensors ------------------------------------------------------------------------------------

    def allocate_tensors(self) -> None:
        """Takes the planned memory and packs the weights.

        Sizes that the model leaves open (-1 in `shape_signature`) are those of `shape`, 1 as a rule, until
        resize_tensor_input() says them. Raises InvalidArgumentError, which names the inputs to resize, when the model
        cannot take such a placeholder, UnsupportedError when ops cannot run, Error when shapes do not fit each other,
        and BudgetError, before anything large is taken, when the plan does not fit the budget.
        """
        self._main.allocate()

    def get_input_details(self) -> list[dict[str, Any]]:
        """One dict per input: `name`, `index`, `shape`, `shape_signature` (-1: may change), `dtype`, `quantization`
        (scale and zero point when there is one of each), `quantization_parameters` (`scales`, `zero_points`,
        `quantized_dimension`, `block_size`) and `sparsity_parameters`."""
        return [self._details(self._main, index) for index in self._main.inputs]

    def get_output_details(self) -> list[dict[str, Any]]:
        """One dict per output, as get_input_details()."""
        return [self._details(self._main, index) for index in self._main.outputs]

    def get_tensor_details(self, subgraph_index: int = 0) -> list[dict[str, Any]]:
        """One dict per tensor of a subgraph, as get_input_details()."""
        session = self._session_of(subgraph_index)
        return [self._details(session, index) for index in range(session.tensor_count)]

    def _get_tensor_details(self, tensor_index: int, subgraph_index: int) -> dict[str, Any]:
        return self._details(self._session_of(subgraph_index), tensor_index)

    def _details(self, session: Session, index: int) -> dict[str, Any]:
        details = tensor_details(session, index)
        quantization = details["quantization_parameters"]
        if self._compress_zero_points and len(set(quantization["zero_points"].tolist())) == 1:
            quantization["zero_points"] = quantization["zero_points"][:1]
        return details

    @property
    def experimental_compress_quantization_zero_points(self) -> bool:
        """As the constructor was told."""
        return self._compress_zero_points

    def get_tensor(self, tensor_index: int, subgraph_index: int = 0) -> Array:
        """A copy of a tensor.

        An intermediate result has no memory of its own after a run, unless the interpreter was made with
        experimental_preserve_all_tensors: it is computed again from what the inputs hold now, by a second run up to its
        node, which takes about Plan.recompute_bytes for as long as it lasts (BudgetError: that does not fit). Models
        with state, which a second run would change, need experimental_preserve_all_tensors.
        """
        return self._session_of(subgraph_index).get(tensor_index)

    def set_tensor(self, tensor_index: int, value: Any) -> None:
        """Copies `value` into an input. Its dtype and shape must be those of the tensor."""
        self._main.set(tensor_index, value)

    def bind_tensor(self, tensor_index: int, array: Array | None) -> None:
        """Lets an input, output or variable live in `array` from the next invoke() on, instead of memory of the
        interpreter: an input is read where it is, an output written where it is wanted, and nothing is copied.

        The array must be C-contiguous and aligned, with the dtype and shape of the tensor; only an input may be
        read-only. The interpreter holds it until the tensor is bound to another array, or to None, which gives it
        memory of the interpreter again. Another array for every run costs next to nothing. Bound memory is not counted
        (Plan.bound_bytes). Bind before allocate_tensors() and the interpreter never takes memory for that tensor. After
        a resize, bind arrays of the new shapes: until then allocate_tensors() and invoke() raise.

        An output may overlap no other array that is bound. Strings, and types of less than 8 bits, cannot be bound.
        """
        self._main.bind(tensor_index, array)

    def tensor(self, tensor_index: int) -> Callable[[], Array]:
        """A function that returns a numpy view of the tensor's current memory.

        The memory lives as long as a view of it, even when the interpreter was resized or is gone, and holding a view
        never makes a call fail. After a resize, call the function again for the new memory. Strings and types of less
        than 8 bits have no such view: for them the function returns a copy. So it does for intermediate results, which
        are computed again (see get_tensor()).
        """
        session = self._main
        index = session.check_index(tensor_index)
        return lambda: session.view(index)

    def _safe_to_run(self) -> bool:
        """Whether no view that tensor() returned is still held. LiteRT refuses to run while one is; Leadline runs."""
        return not any(session.has_views() for session in tuple(self._sessions.values()))

    def resize_tensor_input(self, input_index: int, tensor_size: Sequence[int], strict: bool = False) -> None:
        """Sets the shape of an input; call allocate_tensors() afterwards. `strict`: only dimensions that are -1 in
        `shape_signature` may change. Plans of recent shapes are kept, so going back to one of them is cheap."""
        self._main.resize(input_index, tensor_size, strict)

    # Running ------------------------------------------------------------------------------------

    def invoke(self, timeout: float | None = None) -> None:
        """Runs the model once. After `timeout` seconds, waiting for other threads' calls included, it ends with
        TimeLimitError, which names the node it was at. After an error the interpreter can be used again."""
        if timeout is None:
            self._main.invoke()
        else:
            with time_limit(timeout):
                self._main.invoke()

    def reset_all_variables(self) -> None:
        """Sets all variables to their initial state."""
        for session in list(self._sessions.values()):
            if session.ready:
                session.native.reset_variables()

    # Signatures and structure -------------------------------------------------------------------

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """The names of inputs and outputs of each signature: {'add': {'inputs': ['x', 'y'], 'outputs': ['sum']}}."""
        return {
            key: {"inputs": list(signature["inputs"]), "outputs": list(signature["outputs"])}
            for key, signature in self._get_full_signature_list().items()
        }

    def _get_full_signature_list(self) -> dict[str, dict[str, dict[str, int]]]:
        return {
            key: {
                "inputs": dict(sorted(signature.inputs.items())),
                "outputs": dict(sorted(signature.outputs.items())),
            }
            for key, signature in self._signatures.items()
        }

    def get_signature_runner(self, signature_key: str | None = None) -> SignatureRunner:
        """A callable that runs a signature with keyword arguments. None: the only signature of the model."""
        if signature_key is None:
            if len(self._signatures) != 1:
                raise InvalidArgumentError(
                    f"SignatureDef signature_key is None and model has {len(self._signatures)} Signatures. "
                    "None is only allowed when the model has 1 SignatureDef"
                )
            signature_key = next(iter(self._signatures))
        return SignatureRunner(self, signature_key)

    def num_subgraphs(self) -> int:
        """How many subgraphs the model has."""
        return self._model.subgraph_count

    def _get_op_details(self, op_index: int) -> dict[str, Any]:
        nodes, tensors = self._main.description.nodes, self._main.description.tensors
        if not 0 <= operator.index(op_index) < len(nodes):
            raise InvalidArgumentError(f"Invalid node index {op_index}: there are {len(nodes)} nodes")
        return op_details(nodes[op_index], tensors)

    def _get_ops_details(self) -> list[dict[str, Any]]:
        """One dict per node: `index`, `op_name`, `inputs`, `outputs`, `operand_types`, `result_types`."""
        nodes, tensors = self._main.description.nodes, self._main.description.tensors
        return [op_details(node, tensors) for node in nodes]

    @property
    def _interpreter(self) -> InterpreterWrapper:
        """What scripts know as LiteRT's native class."""
        from leadline.lite.wrapper import InterpreterWrapper  # few programs ask for it

        return InterpreterWrapper(self)

    @property
    def _delegates(self) -> list[Delegate]:
        return []

    def _native_handle(self) -> int:
        """In LiteRT the address of a C++ object of its own, which Leadline has none of: raises UnsupportedError."""
        raise UnsupportedError(
            "_native_handle() is the address of a tflite::Interpreter, for C++ code that was compiled against LiteRT; "
            "Leadline's C++ class is leadline::Interpreter (include/leadline/interpreter.h)"
        )

    # Memory and time ----------------------------------------------------------------------------

    @property
    def model(self) -> Model:
        """The model, to share with another interpreter: Interpreter(model=...)."""
        return self._model

    @property
    def budget(self) -> Budget:
        """What this interpreter's memory is charged to."""
        return self._own_budget or self._model.budget

    @property
    def memory_bytes(self) -> int:
        """Bytes charged now for this interpreter, without those of its model (Model.memory_bytes)."""
        natives = [session._native for session in tuple(self._sessions.values())]
        return sum(native.memory_bytes for native in natives if native is not None)

    def plan(self, shapes: Mapping[str | int, Sequence[int]] | None = None) -> Plan:
        """What a run with the current input shapes does and takes; nothing large is allocated for it. Ops that cannot
        run (Plan.missing_ops) are planned around, with the shapes that the file has for their outputs.

        `shapes` are other shapes of inputs, by name or index, to plan for: {"image": [1, 480, 640, 3]}. The
        interpreter keeps its own. Where the model leaves sizes open (-1 in `shape_signature`) and cannot be planned
        before they are known, InvalidArgumentError says which inputs need a shape.
        """
        if self._main._native is None and self._model.missing_ops:
            native = _leadline.Interpreter(self._model, plan_only=True, **self._options)
        else:
            native = self._main.native
        if not shapes:
            return native.plan()
        return native.plan_for({self._input_index(key): [int(size) for size in shape] for key, shape in shapes.items()})

    def _input_index(self, key: str | int) -> int:
        """The index of an input that a caller means by its name, in a signature or in the file, or by its index."""
        if not isinstance(key, str):
            return self._main.check_index(key)
        names = {self._main.info(index).name: index for index in self._main.inputs}
        for signature in self._signatures.values():
            if signature.subgraph == 0:
                names |= signature.inputs
        if key not in names:
            known = ", ".join(map(shown, names))
            raise InvalidArgumentError(f"the model has no input called {key!r}; it has {known or 'none'}")
        return names[key]

    def counted_peak_bytes(self) -> int:
        """The most bytes charged at one time for this interpreter and its model; after a run, plan().peak_bytes."""
        return self._main.native.counted_peak_bytes()

    def enable_profile(self, enabled: bool = True) -> None:
        """Starts (or restarts) or stops measuring the time of each node."""
        self._main.native.enable_profile(enabled)
        self._profiled = bool(enabled)

    def profile(self) -> Profile:
        """Time per node, summed over the runs since enable_profile()."""
        if not self._profiled:
            raise Error("Nothing was measured: call enable_profile() before the runs to measure")
        from leadline.lite.profile import Profile  # most programs show neither this nor HTML

        return Profile(self._main.native.profile())

    def __repr__(self) -> str:
        inputs = described(self._main, self._main.inputs)
        outputs = described(self._main, self._main.outputs)
        state = "allocated" if self._main.ready else "not allocated"
        return f"<leadline.lite.Interpreter: {inputs} -> {outputs}, {state}>"

    def _repr_html_(self) -> str:
        from leadline.notebook.html import interpreter_html

        tensors = [("input", details) for details in self.get_input_details()]
        tensors += [("output", details) for details in self.get_output_details()]
        try:
            plan = self.plan()
            facts: dict[str, object] = {"planned peak": plan.peak_bytes, **plan.categories}
            if plan.missing_ops:
                facts["ops that cannot run"] = ", ".join(plan.missing_ops)
        except Error as error:
            facts = {"cannot be planned": str(error)}
        return interpreter_html("leadline.lite.Interpreter", tensors, facts)


class InterpreterWithCustomOps(Interpreter):
    """An Interpreter for models with custom ops. Leadline's are made with leadline.register_op, which every Interpreter
    knows; `custom_op_registerers`, which register C++ code with LiteRT, are refused with what to do instead.
    """

    __module__ = "leadline.lite"  # where users find it

    def __init__(
        self, custom_op_registerers: Sequence[str | Callable[[int], None]] | None = None, **arguments: Any
    ) -> None:
        check_registerers(custom_op_registerers)
        super().__init__(**arguments)
