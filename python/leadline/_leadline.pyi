# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_stubs.py; do not edit.
"""Leadline's native part. Use it through the package `leadline`."""

import enum
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from numpy.typing import NDArray
from typing_extensions import Buffer

__version__: str

class Error(RuntimeError):
    """Any problem that Leadline reports. `code` says what kind: 'invalid_model', 'unsupported', 'invalid_argument', 'budget', 'io', 'runtime', 'cancelled', 'timeout', 'internal' or 'out_of_memory'."""

    code: str

class InvalidModelError(Error, ValueError):
    """The file is damaged, truncated or breaks a rule of the format."""

    code: str

class UnsupportedError(Error, NotImplementedError, ValueError):
    """The model is legal but needs an op, version or type that Leadline does not have."""

    code: str

class InvalidArgumentError(Error, ValueError):
    """A value of the caller does not fit: an index, shape, dtype or option."""

    code: str

class BudgetError(Error, MemoryError):
    """The job needs more memory than its budget allows. `needed` and `limit` are in bytes; the message ends with a table of what needs how much."""

    code: str
    needed: int
    limit: int

class IoError(Error, ValueError, OSError):
    """The operating system refused to read, write or map a file."""

    code: str

class OutOfMemoryError(Error, MemoryError):
    """The system refused memory that is too small for a budget to count. What was begun has been undone."""

    code: str

class TimeLimitError(Error, TimeoutError):
    """The work took longer than its time limit. The message names the node it was at."""

    code: str

class DType(enum.Enum):
    """Element type of a tensor; the values are those of the .tflite format."""

    FLOAT32 = 0

    FLOAT16 = 1

    INT32 = 2

    UINT8 = 3

    INT64 = 4

    STRING = 5

    BOOL = 6

    INT16 = 7

    COMPLEX64 = 8

    INT8 = 9

    FLOAT64 = 10

    COMPLEX128 = 11

    UINT64 = 12

    RESOURCE = 13

    VARIANT = 14

    UINT32 = 15

    UINT16 = 16

    INT4 = 17

    BFLOAT16 = 18

    INT2 = 19

    UINT4 = 20

    FLOAT8E4M3FN = 21

    FLOAT8E5M2 = 22

def check_limits() -> None:
    """Raises TimeLimitError when a time_limit of this thread is over."""

class time_limit:
    """
    In a `with` block, whatever Leadline does on this thread (load, plan, run, convert, calibrate, quantize, debug) ends with TimeLimitError when `seconds` have passed since the block began; None: never. The message names the node it was at. Interpreters can be used again. Blocks nest.
    """

    def __init__(self, seconds: float | None) -> None: ...
    def __enter__(self) -> time_limit: ...
    def __exit__(self, *exception: object) -> None: ...
    def __repr__(self) -> str: ...

class Budget:
    """
    A limit in bytes and the count of what is charged to it. Share one between models and interpreters to hold them to a common limit.
    """

    def __init__(self, limit: int | str) -> None:
        """
        A budget of `limit` bytes: an int, or a text such as '200MB', '1.5GiB', '50%'.
        """

    @staticmethod
    def machine_default() -> Budget:
        """
        A budget of 90 % of what the machine and its limits (cgroup, RLIMIT_AS, RLIMIT_DATA, MemAvailable) leave now, or what the environment variable LEADLINE_MEMORY says.
        """

    def child(self) -> Budget:
        """
        A budget with counts of its own and no limit of its own, charged to this one too.
        """

    def charge(self, bytes: int) -> None:
        """
        Charges memory that Python takes for tensors, or raises BudgetError and charges nothing.
        """

    def release(self, bytes: int) -> None:
        """Returns what charge() took."""

    @property
    def limit(self) -> int:
        """The limit in force, in bytes."""

    @property
    def available(self) -> int:
        """Bytes that can still be charged."""

    @property
    def used(self) -> int:
        """Bytes charged now."""

    @property
    def peak(self) -> int:
        """The most bytes that were charged at one time."""

    @property
    def categories(self) -> dict[str, int]:
        """Bytes charged now, by category."""

    def format(self, bytes: int) -> str:
        """
        Bytes as text, in the units that the limit was given in: MB for '200MB', else MiB.
        """

    def reset_peak(self) -> None:
        """Starts a new measurement: peak = used."""

    def __repr__(self) -> str: ...

def parse_bytes(text: str) -> int:
    """
    Reads '4096', '200MB', '1.5GiB' or '50%' (of the memory available now).
    """

def format_bytes(bytes: int, like: str = "") -> str:
    """
    Bytes as text: '1.2 GiB', '512 KiB', '17 B'; in the units of `like`: '1.3 GB' for like='2GB'.
    """

class MemoryLimits:
    """
    What the machine and its limits leave to this process, each in bytes; -1: no such limit.
    """

    @property
    def machine_available(self) -> int:
        """MemAvailable of /proc/meminfo."""

    @property
    def cgroup_available(self) -> int:
        """Limit minus use of the control group."""

    @property
    def rlimit_as(self) -> int:
        """RLIMIT_AS minus the address space in use."""

    @property
    def rlimit_data(self) -> int:
        """RLIMIT_DATA minus the data in use."""

    @property
    def available(self) -> int:
        """The smallest of those that exist."""

    def __repr__(self) -> str: ...

def read_memory_limits() -> MemoryLimits:
    """The limits of this moment."""

class TensorInfo:
    """Description of a tensor."""

    @property
    def index(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def dtype(self) -> DType: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def shape_signature(self) -> list[int]:
        """-1 where the size may change."""

    @property
    def scales(self) -> list[float]:
        """Empty: not quantized."""

    @property
    def zero_points(self) -> list[int]: ...
    @property
    def quantized_dimension(self) -> int: ...
    @property
    def constant(self) -> bool: ...
    @property
    def variable(self) -> bool: ...
    @property
    def sparse(self) -> bool: ...
    @property
    def bytes(self) -> int: ...
    def __repr__(self) -> str: ...

class SparsityInfo:
    """How the values of a sparse constant are spread over its shape."""

    class Dimension:
        """One level of the traversal."""

        @property
        def compressed(self) -> bool: ...
        @property
        def dense_size(self) -> int:
            """Of a dense dimension."""

        @property
        def segments(self) -> list[int]:
            """Of a compressed one: where each row of indices starts."""

        @property
        def indices(self) -> list[int]: ...

    @property
    def traversal_order(self) -> list[int]: ...
    @property
    def block_map(self) -> list[int]: ...
    @property
    def dimensions(self) -> list[SparsityInfo.Dimension]: ...

class NodeInfo:
    """One node of a subgraph."""

    @property
    def index(self) -> int: ...
    @property
    def op(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def inputs(self) -> list[int]:
        """Tensor numbers; -1: absent."""

    @property
    def outputs(self) -> list[int]: ...
    @property
    def attributes(self) -> str:
        """'stride_w=2 stride_h=2 ...'"""

    @property
    def macs(self) -> int:
        """
        Products that a convolution or a product of matrices computes for the shapes in the file; 0 for others.
        """

    def __repr__(self) -> str: ...

class SubgraphInfo:
    """One subgraph of a model."""

    @property
    def name(self) -> str: ...
    @property
    def inputs(self) -> list[int]: ...
    @property
    def outputs(self) -> list[int]: ...
    @property
    def tensors(self) -> list[TensorInfo]: ...
    @property
    def nodes(self) -> list[NodeInfo]: ...
    def __repr__(self) -> str: ...

class SignatureInfo:
    """A named way to call a subgraph."""

    @property
    def key(self) -> str: ...
    @property
    def subgraph(self) -> int: ...
    @property
    def inputs(self) -> dict[str, int]:
        """Tensor numbers by name."""

    @property
    def outputs(self) -> dict[str, int]: ...
    def __repr__(self) -> str: ...

class Model:
    """
    A loaded, verified model. Immutable; share it between interpreters and threads.
    """

    @staticmethod
    def load(path: str | os.PathLike[str], budget: Budget | int | str | None = None) -> Model:
        """
        Maps the file (no copy) and verifies it. The file must not change while the model lives.
        """

    @staticmethod
    def from_bytes(content: Buffer | NDArray[Any], budget: Budget | int | str | None = None) -> Model:
        """
        The same from memory: `bytes` are borrowed, any other buffer is copied.
        """

    @property
    def description(self) -> str: ...
    @property
    def subgraph_count(self) -> int: ...
    def subgraph(self, index: int) -> SubgraphInfo:
        """Tensors and nodes of one subgraph."""

    def sparsity(self, subgraph: int, tensor: int) -> SparsityInfo | None:
        """None for a dense tensor."""

    @property
    def signatures(self) -> list[SignatureInfo]: ...
    @property
    def metadata(self) -> dict[str, bytes]:
        """Bytes of each metadata entry."""

    @property
    def conversion_record(self) -> object:
        """How the file was made, where it says so; else None."""

    @property
    def missing_ops(self) -> dict[str, str]:
        """
        Names of the ops that cannot run now, and why; registered custom ops can.
        """

    @property
    def file_bytes(self) -> int: ...
    @property
    def memory_bytes(self) -> int:
        """Bytes charged now for the file, the graph and packed weights."""

    def to_text(self) -> str:
        """One line per node, to be read."""

    def to_tflite(self) -> bytes:
        """The model as the bytes of a new .tflite file."""

    @property
    def budget(self) -> Budget:
        """What this model is charged to."""

    def __str__(self) -> str: ...
    def __repr__(self) -> str: ...

class ModelBuilder:
    """A model being built; the public class is leadline.ModelBuilder."""

    def __init__(self) -> None: ...
    def add_subgraph(self, name: str) -> int:
        """The number of a new, empty subgraph."""

    def add_tensor(self, subgraph: int, info: TensorInfo) -> int:
        """The number of a new tensor."""

    def add_constant(self, subgraph: int, info: TensorInfo, data: object, sparsity: SparsityInfo | None = None) -> int:
        """A tensor with contents, which are copied."""

    def set_blockwise(self, subgraph: int, tensor: int, scales: int, zero_points: int, block_size: int) -> None:
        """
        Blocks of values share a scale: the tensors with scales and zero points (-1: none).
        """

    def add_node(
        self,
        subgraph: int,
        op: str,
        inputs: Sequence[int],
        outputs: Sequence[int],
        attributes: Mapping[str, bool | int | float | str | Sequence[int] | Sequence[float]],
        custom_options: bytes,
        intermediates: Sequence[int],
        version: int,
        custom: bool = False,
    ) -> None:
        """Version 0: the newest."""

    def add_results(
        self,
        subgraph: int,
        op: str,
        inputs: Sequence[int],
        attributes: Mapping[str, bool | int | float | str | Sequence[int] | Sequence[float]],
        custom_options: bytes,
        intermediates: Sequence[int],
        version: int,
        custom: bool,
        count: int,
        name: str,
        dtypes: Sequence[DType],
        shapes: Sequence[Sequence[int]],
    ) -> list[int]:
        """
        The same of a node whose outputs are made, and returned; without shapes those are inferred.
        """

    def set_inputs(self, subgraph: int, tensors: Sequence[int]) -> None:
        """Replaces the inputs."""

    def set_outputs(self, subgraph: int, tensors: Sequence[int]) -> None:
        """Replaces the outputs."""

    def add_signature(self, key: str, subgraph: int, inputs: Mapping[str, int], outputs: Mapping[str, int]) -> None:
        """Names a way to call a subgraph."""

    def to_tflite(self) -> bytes:
        """The verified model as the bytes of a .tflite file."""

def make_tensor_info(
    name: str,
    dtype: DType,
    shape: Sequence[int],
    signature: Sequence[int],
    scales: Sequence[float],
    zero_points: Sequence[int],
    quantized_dimension: int,
    variable: bool,
) -> TensorInfo:
    """The description of a tensor, for ModelBuilder."""

def make_sparsity_info(
    traversal_order: Sequence[int],
    block_map: Sequence[int],
    dimensions: Sequence[tuple[int, tuple[Sequence[int], Sequence[int]] | None]],
) -> SparsityInfo:
    """Dimensions are (dense size, None) or (0, (segments, indices))."""

class KerasWeight:
    """A variable of a Keras layer, read when it is needed."""

    def __init__(
        self, name: str, dtype: DType, shape: Sequence[int], read_into: Callable[[memoryview], None]
    ) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def dtype(self) -> DType: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def nbytes(self) -> int: ...
    def read(self) -> bytearray:
        """All values, in C order."""

    def transposed(self, permutation: Sequence[int]) -> KerasWeight: ...
    def reshaped(self, shape: Sequence[int]) -> KerasWeight: ...
    def converted(self, dtype: DType) -> KerasWeight: ...

class KerasLayerCall:
    """
    One call of a Keras layer; the public class is leadline.KerasLayerBuilder.
    """

    @property
    def name(self) -> str: ...
    @property
    def class_name(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def config(self) -> str:
        """JSON."""

    @property
    def inputs(self) -> list[int]: ...
    @property
    def mask(self) -> int:
        """-1: none."""

    def weights(self, part: str = "") -> list[KerasWeight]: ...
    def tensor(self, index: int) -> tuple[str, DType, tuple[int | None, ...]]:
        """Its name, type and sizes."""

    def add_weight(self, name: str, weight: KerasWeight) -> int:
        """A constant whose values are read when the model is written."""

    def add_constant(self, name: str, dtype: DType, shape: Sequence[int], data: object) -> int: ...
    def add_node(
        self,
        op: str,
        inputs: Sequence[int],
        name: str,
        outputs: int,
        dtypes: Sequence[DType],
        dims: Sequence[Sequence[int]],
        attributes: Mapping[str, bool | int | float | str | Sequence[int] | Sequence[float]],
        custom_options: bytes,
        version: int,
    ) -> list[int]: ...
    def add_layer(self, part: str, description: str, inputs: Sequence[int]) -> list[int]: ...

def register_keras_layer(name: str, function: Callable[[KerasLayerCall], list[int]]) -> None:
    """
    Registers what a Keras layer computes; the function returns the indices of its outputs.
    """

def unregister_keras_layer(name: str) -> bool:
    """Takes a layer away again; False when there was none of this name."""

def registered_keras_layers() -> list[str]:
    """Names of the registered layers, sorted."""

class ModelSource(enum.Enum):
    """What a model was converted from."""

    UNKNOWN = 0

    SAVED_MODEL = 1

    KERAS_MODEL = 2

    CONCRETE_FUNCTIONS = 3

    GRAPH_DEF = 4

    SESSION = 5

    JAX = 6

    PYTORCH = 7

class ConversionPlan:
    """What a conversion makes and needs, known before weights are read."""

    @property
    def result_bytes(self) -> int:
        """Of the .tflite file, exactly."""

    @property
    def peak_bytes(self) -> int:
        """
        Of memory while convert() works: the graph, the file, a tensor on its way into it.
        """

    @property
    def file_peak_bytes(self) -> int:
        """The same of convert_to(), which does not hold it."""

    @property
    def nodes(self) -> int: ...
    @property
    def tensors(self) -> int: ...
    def __repr__(self) -> str: ...

class Converter:
    """A model that was read and simplified, ready to be written as .tflite."""

    @staticmethod
    def from_keras(
        path: str | os.PathLike[str],
        budget: Budget | None = None,
        disabled_passes: Sequence[str] = [],
        tensorflow_version: str = "",
    ) -> Converter:
        """
        A Keras model file: .keras or a whole-model .h5. Weights stay in the file.
        """

    @staticmethod
    def from_keras_config(
        config: str,
        weights: Callable[[str], Sequence[KerasWeight]],
        budget: Budget | None = None,
        disabled_passes: Sequence[str] = [],
        tensorflow_version: str = "",
    ) -> Converter:
        """
        A Keras model in memory: model.to_json(), and a function from paths of layers to their variables.
        """

    @staticmethod
    def from_saved_model(
        path: str | os.PathLike[str],
        signature_keys: Sequence[str] = [],
        tags: Sequence[str] = [],
        budget: Budget | None = None,
        allow_custom_ops: bool = False,
        select_tf_ops: bool = False,
        disabled_passes: Sequence[str] = [],
        source: ModelSource = ModelSource.UNKNOWN,
        plain_inputs: Sequence[tuple[str, str]] = [],
        plain_outputs: Sequence[tuple[str, str]] = [],
    ) -> Converter:
        """
        A SavedModel directory. No signature keys: all of them; no tags: "serve". With allow_custom_ops, ops without a conversion become custom ops; with select_tf_ops they stay TensorFlow's own. plain_inputs and plain_outputs: pairs of the name in the signature and the tensor's, in the order of the model.
        """

    def with_record(self, allow_custom_ops: bool, select_tf_ops: bool) -> Converter:
        """
        The same conversion with these settings in the file's record of its making.
        """

    def without_record(self) -> Converter:
        """The same conversion of a file that does not say how it was made."""

    def with_unfolded_constants(self) -> Converter:
        """
        The same conversion with FILL nodes in place of large constants of one value.
        """

    def with_select_tf_ops(self) -> Converter:
        """
        The same conversion with TensorFlow's own ops in place of builtin ones that only Leadline computes.
        """

    def without_signatures(self) -> Converter:
        """
        The same conversion of a model without signatures, as TensorFlow makes one of a frozen graph.
        """

    def with_finite_constants(self) -> Converter:
        """
        The same conversion with the largest finite numbers in place of infinite constants.
        """

    def plan(self) -> ConversionPlan:
        """What the conversion makes and needs."""

    def convert(self, progress: Callable[[int, int], Any] | None = None) -> bytes:
        """
        The bytes of the .tflite file. BudgetError when it does not fit. progress(done, total) may return False.
        """

    def convert_to_model(
        self, progress: Callable[[int, int], Any] | None = None, budget: Budget | None = None
    ) -> Model:
        """
        The same as a model to run, in memory that is returned to the system with it.
        """

    def convert_to(self, path: str | os.PathLike[str], progress: Callable[[int, int], Any] | None = None) -> None:
        """
        Writes the file, which appears whole or not at all; weights stream into it.
        """

    def to_text(self) -> str:
        """One line per node, to be read."""

class ConvertJob:
    """leadline.convert() before it starts."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        signature_keys: Sequence[str] = [],
        allow_custom_ops: bool = False,
        select_tf_ops: bool = False,
        budget: Budget | None = None,
    ) -> None: ...
    def plan(self) -> JobPlan:
        """What it takes, phase by phase."""

    def run_to_file(
        self, path: str | os.PathLike[str], observer: Callable[[str, int, int | None], Any] | None = None
    ) -> None:
        """Writes the file, which appears whole or not at all."""

class OpInfo:
    """One op of the .tflite format, or a custom op of Leadline's own."""

    @property
    def name(self) -> str: ...
    @property
    def code(self) -> int:
        """Number of the builtin op; -1: a custom op."""

    @property
    def max_version(self) -> int: ...
    @property
    def runs(self) -> bool: ...
    @property
    def types(self) -> str:
        """Types and quantized forms: 'f32 i8 u8 i16x8 hybrid'."""

    @property
    def fast(self) -> str:
        """Those of them with kernels tuned for the CPU."""

    @property
    def reason(self) -> str:
        """Why it does not run."""

    def __repr__(self) -> str: ...

def known_ops() -> list[OpInfo]:
    """
    Builtin ops by their number, then custom ops by name; what users registered is not among them.
    """

class NodeProfile:
    """Time spent in one node, summed over runs."""

    @property
    def subgraph(self) -> int:
        """Subgraph of the node."""

    @property
    def node(self) -> int:
        """Number of the node in the file."""

    @property
    def op(self) -> str:
        """Name of the op."""

    @property
    def name(self) -> str:
        """Name of the node's first output."""

    @property
    def runs(self) -> int:
        """How often it ran."""

    @property
    def total_ms(self) -> float:
        """Milliseconds in all runs."""

    @property
    def fastest_ms(self) -> float:
        """Milliseconds of its fastest run."""

    def __repr__(self) -> str: ...

class PlannedTensor:
    """One tensor of the subgraph, as planned."""

    @property
    def index(self) -> int:
        """Number in the file."""

    @property
    def name(self) -> str: ...
    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def bytes(self) -> int: ...
    @property
    def storage(self) -> str:
        """Where its bytes live: in the file, the arena, ..."""

    @property
    def offset(self) -> int:
        """Offset in the arena; -1: lives elsewhere."""

    @property
    def segment(self) -> int:
        """Which arena."""

    @property
    def first_step(self) -> int:
        """Step that writes it; -1: alive from the start."""

    @property
    def last_step(self) -> int:
        """Last step that reads it."""

    @property
    def shares_with(self) -> int:
        """Tensor whose memory it uses; -1: memory of its own."""

    @property
    def bound(self) -> bool:
        """In memory of the caller, which is not counted."""

    def __repr__(self) -> str: ...

class PlannedStep:
    """One node, in execution order."""

    @property
    def node(self) -> int:
        """Number in the file."""

    @property
    def op(self) -> str: ...
    @property
    def name(self) -> str:
        """Name of its first output."""

    @property
    def inputs(self) -> list[int]:
        """Tensor numbers; -1: absent."""

    @property
    def outputs(self) -> list[int]:
        """Tensor numbers."""

    @property
    def merged(self) -> list[int]:
        """Numbers of the nodes whose work it does besides its own."""

    @property
    def segment(self) -> int: ...
    @property
    def scratch_bytes(self) -> int: ...
    @property
    def packed_bytes(self) -> int: ...
    @property
    def persistent_bytes(self) -> int:
        """Memory of the op whose contents stay between runs."""

    @property
    def live_bytes(self) -> int:
        """Arena bytes that must exist during this step."""

    def __repr__(self) -> str: ...

class PlannedPhase:
    """A stretch of the job and the memory it holds at its highest."""

    @property
    def name(self) -> str:
        """'load', 'prepare' or 'run'."""

    @property
    def categories(self) -> dict[str, int]: ...
    @property
    def bytes(self) -> int: ...
    def __repr__(self) -> str: ...

class PlannedSegment:
    """Nodes whose shapes become known together, with their own arena."""

    @property
    def first_step(self) -> int: ...
    @property
    def last_step(self) -> int:
        """Inclusive; -1: empty."""

    @property
    def arena_bytes(self) -> int:
        """Scratch included."""

    @property
    def lower_bound_bytes(self) -> int:
        """No layout can be smaller."""

    def __repr__(self) -> str: ...

class Plan:
    """
    What a run will do and how many bytes it takes, known before it starts.
    """

    @property
    def peak_bytes(self) -> int:
        """What the budget is asked for, the mapped file included."""

    @property
    def bound_bytes(self) -> int:
        """Memory of the caller (bind_tensor): not part of peak_bytes."""

    @property
    def arena_bytes(self) -> int:
        """Bytes of the arena."""

    @property
    def lower_bound_bytes(self) -> int:
        """No layout of the arena can be smaller."""

    @property
    def recompute_bytes(self) -> int:
        """
        About what get_tensor() of an intermediate tensor takes beside peak_bytes while it lasts: a second run.
        """

    @property
    def threads(self) -> int: ...
    @property
    def complete(self) -> bool:
        """False while some shapes depend on data of a run."""

    @property
    def missing_ops(self) -> list[str]:
        """
        Names of ops that cannot run; their outputs are planned with the file's shapes.
        """

    @property
    def categories(self) -> dict[str, int]:
        """Bytes by category at the peak; their sum is peak_bytes."""

    @property
    def phases(self) -> list[PlannedPhase]: ...
    @property
    def steps(self) -> list[PlannedStep]: ...
    @property
    def tensors(self) -> list[PlannedTensor]: ...
    @property
    def segments(self) -> list[PlannedSegment]: ...
    def to_text(self) -> str:
        """A table to be read."""

    def to_json(self) -> str:
        """The whole plan as JSON text."""

    def to_dict(self) -> dict[str, Any]:
        """The whole plan as dicts and lists."""

    def to_html(self, title: str = "Memory plan") -> str:
        """One self-contained page: a summary, and the tensors as bars over time."""

    def __str__(self) -> str: ...
    def __repr__(self) -> str: ...

class JobPhase:
    """A stretch of a job and the most memory that is in use meanwhile."""

    @property
    def name(self) -> str: ...
    @property
    def categories(self) -> dict[str, int]:
        """Bytes by category at the peak; their sum is peak_bytes."""

    @property
    def peak_bytes(self) -> int: ...
    @property
    def detail(self) -> str: ...
    def __repr__(self) -> str: ...

class JobPlan:
    """What a job takes, known before it takes anything."""

    @property
    def job(self) -> str: ...
    @property
    def phases(self) -> list[JobPhase]:
        """In the order they run."""

    @property
    def peak_bytes(self) -> int:
        """Of the largest phase: what the budget is asked for."""

    @property
    def result_bytes(self) -> int:
        """At most, of the file that comes out; 0: it is not a file."""

    @property
    def complete(self) -> bool:
        """False while some shapes depend on data of a run."""

    def to_text(self) -> str: ...
    def to_json(self) -> str: ...
    def __str__(self) -> str: ...
    def __repr__(self) -> str: ...

class Device:
    """A device of this machine, named as in TensorFlow."""

    @property
    def name(self) -> str:
        """'/CPU:0', '/GPU:1'."""

    @property
    def kind(self) -> str:
        """'CPU', 'GPU' or 'ACCELERATOR'."""

    @property
    def api(self) -> str:
        """How it is reached: 'native', 'CUDA' or 'OpenCL'."""

    @property
    def model(self) -> str: ...
    @property
    def driver(self) -> str: ...
    @property
    def cores(self) -> int:
        """CPUs that may be used, or compute units; 0: unknown."""

    @property
    def memory_bytes(self) -> int:
        """Memory in all; -1: unknown."""

    @property
    def memory_available(self) -> int:
        """Memory that can be used now; -1: unknown."""

    @property
    def features(self) -> list[str]: ...
    @property
    def runs(self) -> bool:
        """Whether Leadline has kernels for it."""

    def __repr__(self) -> str: ...

class DeviceList:
    """Devices of this machine, and why others were not found."""

    @property
    def devices(self) -> list[Device]: ...
    @property
    def notes(self) -> list[str]: ...
    def to_text(self) -> str: ...

def devices(timeout_seconds: float = 5.0) -> DeviceList:
    """Looks for devices; drivers are asked in a child process."""

class MissingDevice(enum.Enum):
    """What to do when a device does not exist or has no kernels yet."""

    ERROR = 0
    """Refuse, with a message that lists what exists."""

    FALLBACK = 1
    """Run on /CPU:0."""

def choose_device(wanted: str, on_missing: MissingDevice = MissingDevice.ERROR) -> tuple[str, str]:
    """The device to use for a name, and the reason when it is another."""

class PassInfo:
    """A rewrite of a model's graph."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def runs(self) -> bool:
        """Made by an Interpreter, unless its disabled_passes name it."""

    @property
    def converts(self) -> bool:
        """Made by a Converter, unless its disabled_passes name it."""

    def __repr__(self) -> str: ...

def list_passes() -> list[PassInfo]:
    """
    All passes over graphs, those of the interpreter first, in their order.
    """

class TensorMemory:
    """
    The memory of a tensor, which lives as long as this or an array made from it. Offers the buffer protocol: a flat buffer of bytes.
    """

    def __buffer__(self, flags: int, /) -> memoryview: ...
    @property
    def dtype(self) -> DType: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def nbytes(self) -> int: ...
    def __repr__(self) -> str: ...

class Interpreter:
    """
    Runs one subgraph of a Model. The public class is leadline.lite.Interpreter.
    """

    def __init__(
        self,
        model: Model,
        num_threads: int = 1,
        budget: Budget | None = None,
        subgraph: int = 0,
        preserve_all_tensors: bool = False,
        shares_state_with: Interpreter | None = None,
        plan_only: bool = False,
        device: str = "",
        on_missing: MissingDevice = MissingDevice.ERROR,
        winograd: bool = True,
        max_loop_rounds: int = 100000000,
        disabled_passes: Sequence[str] = [],
    ) -> None:
        """
        Plans; allocates nothing that grows with the model. winograd: float 3x3 convolutions may use Winograd's method, which is faster and rounds elsewhere than plain sums do. disabled_passes: names of passes (list_passes()) that do not merge nodes for the runs, or "all".
        """

    @property
    def model(self) -> Model: ...
    @property
    def device(self) -> str:
        """Where the model runs."""

    @property
    def device_message(self) -> str:
        """Why that is not the device that was asked for; empty when it is."""

    def plan(self) -> Plan:
        """The plan for the current input shapes."""

    def plan_for(self, shapes: Mapping[int, Sequence[int]]) -> Plan:
        """The plan for other shapes of inputs, by tensor number."""

    @property
    def unsized_inputs(self) -> list[int]:
        """
        Inputs whose sizes the file leaves open and resize_input() has not said.
        """

    def allocate(self) -> None:
        """Takes the planned memory and packs the weights."""

    def resize_input(self, index: int, shape: Sequence[int], strict: bool = False) -> None:
        """Sets the shape of an input."""

    @property
    def inputs(self) -> list[int]: ...
    @property
    def outputs(self) -> list[int]: ...
    @property
    def tensor_count(self) -> int: ...
    def tensor_info(self, index: int) -> TensorInfo: ...
    def set_tensor(self, index: int, bytes: Buffer | NDArray[Any]) -> None:
        """Copies a buffer into an input or variable."""

    def bind_tensor(self, index: int, buffer: Buffer | NDArray[Any], shape: Sequence[int]) -> None:
        """
        Lets an input, output or variable live in this buffer, which is held; its element type is not checked.
        """

    def unbind_tensor(self, index: int) -> None:
        """Moves a tensor back to memory of the interpreter."""

    def tensor(self, index: int) -> TensorMemory:
        """The memory of a tensor."""

    def invoke(self) -> None:
        """Runs once. To be ended by signals and by time_limit()."""

    def reset_variables(self) -> None:
        """Sets all variables to their initial state."""

    def counted_peak_bytes(self) -> int:
        """Highest count of bytes charged for this interpreter and its model."""

    @property
    def memory_bytes(self) -> int:
        """Bytes charged now for this interpreter alone, without its model's."""

    def enable_profile(self, enabled: bool) -> None: ...
    def profile(self) -> list[NodeProfile]:
        """Time per node since profiling was switched on."""

class Operand:
    """An input or output of a custom op before it runs."""

    @property
    def info(self) -> TensorInfo: ...
    @property
    def memory(self) -> TensorMemory | None:
        """None: the data is not known yet."""

    def __repr__(self) -> str: ...

def register_op(name: str, make: Callable[[str, int, str, int, bytes], Any]) -> None:
    """
    Registers an op; make(op, index, name, version, options) returns the object for a node.
    """

def unregister_op(name: str) -> bool:
    """
    Takes an op away again; False when there was none of this name. Interpreters that were made keep it.
    """

def registered_ops() -> list[str]:
    """Names of the registered ops, sorted."""

def decode_options(content: bytes) -> Any:
    """
    A FlexBuffers document as dicts, lists, numbers and texts; None when the bytes are none.
    """

class DebugRun:
    """How a result came about, for its page."""

    def __init__(
        self,
        float_model: str = "",
        quantized_model: str = "",
        data: str = "",
        seconds: float = 0.0,
        counted_bytes: int = 0,
    ) -> None: ...

class DebugResult:
    """What debugging found. The public class is leadline.DebugResult."""

    def to_json(self) -> str: ...
    def to_node_data(self) -> str: ...
    def to_csv(self) -> str: ...
    def to_text(self, opened: str = "") -> str: ...
    def to_html(self, run: DebugRun) -> str:
        """One self-contained page."""

    def to_notebook_html(self, run: DebugRun) -> str:
        """The page in a frame, for the output of a notebook's cell."""

def make_debug_model(float_model: Model, quantized_model: Model) -> bytes:
    """
    The quantized model with NumericVerify nodes, as TensorFlow's debugger takes it.
    """

def debug_model_of(float_model: Model, quantized_model: Model) -> Model:
    """The same as a model to run, which shares the constants of both."""

class VerifiedLayer:
    """A NumericVerify of a debug model."""

    @property
    def subgraph(self) -> int: ...
    @property
    def node(self) -> int: ...
    @property
    def output_name(self) -> str: ...
    @property
    def output_tensor(self) -> int: ...
    @property
    def tensor(self) -> int:
        """The quantized tensor."""

    @property
    def reference(self) -> int:
        """What it is compared with."""

    @property
    def tensor_name(self) -> str:
        """As the float model calls it."""

    @property
    def op(self) -> str: ...
    @property
    def scales(self) -> list[float]: ...
    @property
    def zero_points(self) -> list[int]: ...
    def __repr__(self) -> str: ...

class VerifiedStatistics:
    """TensorFlow's five numbers, each the mean over samples."""

    @property
    def samples(self) -> int: ...
    @property
    def not_finite(self) -> int:
        """Differences that are NaN or infinite, in all samples."""

    @property
    def num_elements(self) -> float: ...
    @property
    def stddev(self) -> float: ...
    @property
    def mean_error(self) -> float: ...
    @property
    def max_abs_error(self) -> float: ...
    @property
    def mean_squared_error(self) -> float: ...
    def __repr__(self) -> str: ...

class DebugModelObserver:
    """Watches the NumericVerify nodes of a debug model."""

    def __init__(self, debug_model: Model) -> None: ...
    @property
    def layers(self) -> list[VerifiedLayer]: ...
    def statistics(self) -> list[VerifiedStatistics]:
        """Of each layer, in the same order."""

    def set_callback(self, callback: object | None) -> None:
        """
        callback(layer, shape, difference, quantized, reference), the last three as bytes; None: no more calls.
        """

    def clear(self) -> None: ...
    def attach(self, interpreter: Interpreter) -> None:
        """Watches every run of the interpreter from now on."""

class GuardReport:
    """How a guarded process ended, or what is known while it runs."""

    @property
    def ended(self) -> bool:
        """Whether the process is gone."""

    @property
    def cause(self) -> str:
        """'exit', 'signal', 'memory', 'processes', 'timeout' or 'interrupt'."""

    @property
    def exit_code(self) -> int:
        """Of an exit; -1 otherwise."""

    @property
    def signal(self) -> int:
        """The signal that ended the process; 0: none."""

    @property
    def peak_bytes(self) -> int:
        """The most memory that the process and its children had."""

    @property
    def seconds(self) -> float:
        """Seconds that it ran."""

    @property
    def memory_limit(self) -> int:
        """The limit in bytes; 0: none."""

    @property
    def cgroup(self) -> bool:
        """Whether a control group keeps the limits; else samples do."""

    @property
    def last_lines(self) -> list[str]:
        """Of standard output and standard error, in the order of their arrival."""

    @property
    def summary(self) -> str:
        """What happened, in a sentence."""

    @property
    def advice(self) -> str:
        """What to do about it."""

    def __repr__(self) -> str: ...

class GuardedProcess:
    """A child process under limits. Use it through `leadline.guard`."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Sequence[bytes],
        memory: int = 0,
        processes: int = 1024,
        inherited: Sequence[int] = [],
        stack_signal: int = 0,
        like: str = "",
    ) -> None:
        """
        Starts a program with an environment of b'NAME=value'; 0: unlimited. It keeps the descriptors `inherited`. Its report has sizes in the units of `like`, such as '2GB'.
        """

    @property
    def pid(self) -> int:
        """Number of the process."""

    def wait(self, seconds: float, watched: int = -1) -> tuple[int, bytes, bool, bool]:
        """
        Waits for output, for the end, or for the descriptor `watched` to be readable. Returns (stream, bytes, readable, ended); stream is 1 or 2, or 0 without output.
        """

    def start_call(self, timeout_seconds: float) -> None:
        """
        Starts the clock, the peak and the last lines of a call; 0: no limit of time.
        """

    def end_call(self) -> bool:
        """
        Stops the clock. False when the guard has decided to kill the process by now.
        """

    def interrupt(self) -> None:
        """SIGINT to the process and its group."""

    def kill(self) -> None:
        """Kills the process and all it started, and waits until they are gone."""

    def resident_bytes(self) -> int:
        """Memory of the process and its children."""

    def processes(self) -> int:
        """How many processes there are, with all it started."""

    def report(self) -> GuardReport:
        """How it ended, or what is known so far."""

class SharedMapping:
    """
    Memory behind a descriptor, as a writable buffer that needs the descriptor no more.
    """

    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __init__(self, fd: int, bytes: int) -> None:
        """Maps the first `bytes` bytes."""

def die_with_parent(parent: int) -> None:
    """
    When the process `parent` is gone, kills every process that this one started, and this one.
    """

class NativeWatch:
    """The thread of a watch. Use it through `leadline.watch`."""

    def __init__(
        self,
        fraction: float,
        resident_limit: int,
        refuse_large: bool,
        refuse_native: bool,
        cells_only: bool,
        recorder: bool,
        signals: bool,
        folder: str,
        stack_signal: int,
        alarm_signal: int,
        pause_signal: int,
        save: object | None,
        save_in_copy: object | None,
        facts: Sequence[tuple[str, str]],
    ) -> None:
        """Starts it. An alarm sends `alarm_signal` to the main thread."""

    def stop(self) -> None:
        """Ends it; the process continues."""

    def take_alarm(self) -> dict[str, Any] | None:
        """The alarm that is to be raised, or None. For the signal's handler."""

    def note_raised(self) -> None:
        """The alarm is about to be raised."""

    def saving(self) -> None:
        """Another variable is being saved."""

    def take_back_alarm(self) -> None:
        """The alarm reached nobody who could stop: it comes again."""

    def stop_at_exit(self, last_words: str) -> None:
        """Ends it; the process is about to end by itself."""

    def begin_cell(self, number: int, first_line: str) -> None:
        """A cell begins."""

    def end_cell(self) -> dict[str, Any]:
        """The cell that ended."""

    def set_facts(self, facts: Sequence[tuple[str, str]]) -> None:
        """What the recorder keeps for the post-mortem."""

    def sample(self) -> dict[str, Any]:
        """Memory now."""

    def samples(self) -> list[dict[str, Any]]:
        """Memory in the last minutes."""

    def cells(self) -> list[dict[str, Any]]:
        """The last 1000 cells."""

    @property
    def busy(self) -> bool:
        """Whether alarms are given now."""

    @property
    def alarms(self) -> int:
        """How many there were."""

    @property
    def cpu_seconds(self) -> float:
        """CPU time of the thread."""

    @property
    def recorder_path(self) -> str:
        """The recorder's file; empty without one."""

    @property
    def recorder_descriptor(self) -> int:
        """Its descriptor; -1 without one."""

class Postmortem:
    """How a watched process came to its end."""

    @property
    def cause(self) -> str:
        """
        'running', 'exit', 'unwatched', 'out of memory', 'killed', 'segmentation fault', 'stack overflow', 'abort', 'bus error', 'arithmetic error', 'illegal instruction', 'signal', 'replaced', 'reboot' or 'unknown'.
        """

    @property
    def confidence(self) -> str:
        """'certain', 'very likely', 'likely' or 'unclear'."""

    @property
    def died(self) -> bool:
        """Whether the process is gone, and not by its own will."""

    @property
    def summary(self) -> str:
        """Which process, when, in which cell, why: one sentence."""

    @property
    def advice(self) -> str:
        """What to do about it."""

    @property
    def evidence(self) -> list[str]:
        """What speaks for the cause."""

    @property
    def pid(self) -> int:
        """Number of the process."""

    @property
    def started(self) -> float:
        """When it was first watched, in seconds since 1970."""

    @property
    def last_sign(self) -> float:
        """Its last sign of life."""

    @property
    def command(self) -> str:
        """Its command line."""

    @property
    def session(self) -> str:
        """Distinguishes one notebook's kernels from another's."""

    @property
    def folder(self) -> str:
        """Where it ran."""

    @property
    def cell(self) -> int:
        """Number of the last cell; 0: none."""

    @property
    def cell_line(self) -> str:
        """Its first line."""

    @property
    def cell_source(self) -> str:
        """All of it, where it is known."""

    @property
    def cell_running(self) -> bool:
        """Whether it was running."""

    @property
    def op(self) -> str:
        """The op of Leadline that ran last."""

    @property
    def op_running(self) -> bool:
        """Whether it was running."""

    @property
    def exit_status(self) -> int | None:
        """As its parent saw it: an exit code, or minus a signal; None: unknown."""

    @property
    def signal(self) -> int:
        """That ended it; 0: none that it saw."""

    @property
    def fault_address(self) -> int:
        """Address of a fault."""

    @property
    def module(self) -> str:
        """Path of the library to blame; empty: unknown."""

    @property
    def message(self) -> str:
        """Last words of an abort or an exit."""

    @property
    def instruction(self) -> str:
        """Bytes of an illegal instruction, in hexadecimal."""

    @property
    def trap(self) -> bool:
        """
        Whether that is one which compilers put where a program must never come.
        """

    @property
    def missing_features(self) -> list[str]:
        """
        Flags of numeric code that the CPU of an illegal instruction does not have.
        """

    @property
    def frames(self) -> list[tuple[str, int, str]]:
        """Native frames as (module, offset, symbol), innermost first."""

    @property
    def python_stack(self) -> str:
        """Python's stack, as faulthandler wrote it."""

    @property
    def guilty(self) -> dict[str, Any] | None:
        """
        The innermost line of the user's own code: file, line, function, source, in_cell; None: unknown.
        """

    @property
    def samples(self) -> list[tuple[float, int, int, int]]:
        """(seconds before the end, resident, used, capacity), oldest first."""

    @property
    def peak_resident(self) -> int:
        """The most resident bytes that were recorded."""

    @property
    def facts(self) -> dict[str, str]:
        """Versions and limits."""

    @property
    def path(self) -> str:
        """The recording; empty: none."""

    @property
    def variables_path(self) -> str:
        """What the watch saved of a notebook's variables; empty: nothing."""

    def brief(self, more: str = "") -> str:
        """
        A few lines for the place where it died; `more` says where there is more.
        """

    def __str__(self) -> str: ...
    def __repr__(self) -> str: ...

def postmortem_of(file: str) -> Postmortem:
    """The post-mortem of one recording."""

def postmortem_of_end(known: dict[str, Any]) -> Postmortem:
    """
    The post-mortem of a process whose parent saw it end. See leadline.jupyter.life.
    """

def look_at_process(pid: int) -> dict[str, Any]:
    """Another process's memory and its control group."""

def note_exec(program: str, failed: bool = False) -> None:
    """This process is about to become another program, or failed to."""

def postmortems(folder: str = "", most: int = 100) -> list[Postmortem]:
    """Of all recordings in a folder, newest first."""

def previous_death(session: str, folder: str) -> list[Postmortem]:
    """
    The last death of the same session that was not reported yet: a list of none or one.
    """

def mark_reported(file: str) -> None:
    """Notes that this death was reported."""

def flights_folder() -> str:
    """Where recordings are kept."""

def raise_in_thread(thread: int, kind: object) -> bool:
    """Raises an exception of this class in another thread of Python."""

def accounted_bytes() -> int:
    """Bytes charged now to all budgets of this process."""

def guard_python_memory() -> None:
    """
    Python's allocators ask the watch from now on. Call it again when other hooks may have replaced ours.
    """

def guard_numpy_memory(array_api: object) -> bool:
    """
    numpy's data allocator asks the watch from now on, in all threads and contexts; False: this numpy is unknown.
    """

def last_refusal() -> dict[str, Any]:
    """What the watch refused last: a dict; `count` is 0 when nothing was."""

def admit_allocation(bytes: int) -> bool:
    """Whether the watch would let Python take as many bytes now."""

class Finding:
    """One thing that doctor found."""

    @property
    def id(self) -> str:
        """What kind of finding it is: 'numpy-abi'."""

    @property
    def severity(self) -> str:
        """'note', 'warning' or 'problem'."""

    @property
    def what(self) -> str: ...
    @property
    def why(self) -> str: ...
    @property
    def fix(self) -> str:
        """The command that fixes it, or what to do."""

    @property
    def source(self) -> str:
        """The page that says so; may be empty."""

    def __repr__(self) -> str: ...

class InstalledPackage:
    """A package that the checks are about."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def location(self) -> str: ...
    @property
    def installer(self) -> str: ...
    def __repr__(self) -> str: ...

class DoctorReport:
    """What doctor saw and found."""

    @property
    def python(self) -> str: ...
    @property
    def python_version(self) -> str: ...
    @property
    def site_packages(self) -> list[str]: ...
    @property
    def package_count(self) -> int: ...
    @property
    def packages(self) -> list[InstalledPackage]: ...
    @property
    def findings(self) -> list[Finding]:
        """Worst first."""

    @property
    def notes(self) -> list[str]: ...
    @property
    def table_date(self) -> str:
        """Date of the table of compatible versions."""

    def to_text(self) -> str: ...

def doctor(
    python: str = "",
    site_packages: Sequence[str] = [],
    python_version: str = "",
    machine: bool = True,
    deep: bool = False,
) -> DoctorReport:
    """
    Looks at a Python environment and this machine for what is known to kill kernels.
    """

class Growth:
    """How one quantity went from round to round."""

    @property
    def verdict(self) -> str:
        """'grows', 'flat' or 'too few rounds'."""

    @property
    def per_round(self) -> float:
        """The median slope after the warm-up."""

    @property
    def low(self) -> float:
        """Lower end of its 95 % interval."""

    @property
    def high(self) -> float:
        """Upper end of its 95 % interval."""

    def __repr__(self) -> str: ...

class LapSample:
    """What there was after a round; -1: unknown."""

    @property
    def round(self) -> int:
        """From 1 on."""

    @property
    def memory(self) -> int:
        """Anonymous, shared and swapped pages of this process, in bytes."""

    @property
    def allocated(self) -> int:
        """Bytes in use in the C library's heap."""

    @property
    def accounted(self) -> int:
        """Leadline's own bytes."""

    @property
    def objects(self) -> int:
        """Blocks of Python's allocator."""

    @property
    def descriptors(self) -> int:
        """Open files, sockets and pipes."""

    @property
    def processes(self) -> int:
        """Child processes, zombies too."""

    def __repr__(self) -> str: ...

class LapReport:
    """Growth over the rounds. The public class is leadline.LapReport."""

    @property
    def verdict(self) -> str:
        """'grows', 'flat' or 'too few rounds'."""

    @property
    def bytes_per_round(self) -> float:
        """Growth of a round."""

    @property
    def low(self) -> float:
        """Lower end of its 95 % interval."""

    @property
    def high(self) -> float:
        """Upper end of its 95 % interval."""

    @property
    def rounds(self) -> int:
        """Rounds so far."""

    @property
    def memory(self) -> Growth:
        """Of the process."""

    @property
    def allocated(self) -> Growth:
        """Of what is in use in the heap."""

    @property
    def accounted(self) -> Growth:
        """Of Leadline's own bytes."""

    @property
    def objects(self) -> Growth:
        """Of the number of Python's blocks."""

    @property
    def descriptors(self) -> Growth:
        """Of the number of open descriptors."""

    @property
    def processes(self) -> Growth:
        """Of the number of child processes."""

    @property
    def text(self) -> str:
        """As text."""

    def __repr__(self) -> str: ...

class Laps:
    """
    Samples of this process after each round. The public class is leadline.Laps.
    """

    def __init__(self) -> None: ...
    def samples_next(self) -> bool:
        """Whether the next lap() takes a sample."""

    def lap(self, objects: int = -1) -> None:
        """Ends a round."""

    def sample_last(self, objects: int = -1) -> None:
        """After the last round."""

    @property
    def rounds(self) -> int:
        """Rounds so far."""

    @property
    def samples(self) -> list[LapSample]:
        """Samples that were kept."""

    def report(self) -> LapReport:
        """What the samples say."""

def remember_object(thing: object) -> None:
    """Lists `thing` in live_objects() as made by the caller's line."""

def live_objects() -> list[tuple[Any, str | None, int]]:
    """
    (object, file or None, line) of each object of Leadline's that lives, oldest first.
    """

def set_package_folder(folder: str) -> None:
    """Lines of files below this folder are not the user's."""

def count_objects() -> dict[str, int]:
    """How many objects of each type there are, by 'module.name' of the type."""

class CalibrationMethod(enum.Enum):
    """How a range is chosen from what was seen."""

    MIN_MAX = 0
    """The smallest and the largest value."""

    MOVING_AVERAGE = 1
    """
    Of the smallest and largest values of the last 256 samples, later ones counting more.
    """

    PERCENTILE = 2
    """All but the rarest values."""

    MSE = 3
    """The range whose integers lie nearest in the mean square."""

    KL = 4
    """The range whose integers keep the distribution best."""

class CalibrationRule:
    """A method with its numbers."""

    def __init__(
        self, method: CalibrationMethod = CalibrationMethod.MIN_MAX, percentile: float = 99.99, momentum: float = 0.9
    ) -> None: ...
    @property
    def method(self) -> CalibrationMethod: ...
    @method.setter
    def method(self, arg: CalibrationMethod, /) -> None: ...
    @property
    def percentile(self) -> float:
        """Share of values inside the range, above 50."""

    @percentile.setter
    def percentile(self, arg: float, /) -> None: ...
    @property
    def momentum(self) -> float:
        """Weight of the past in a moving average."""

    @momentum.setter
    def momentum(self, arg: float, /) -> None: ...
    def __repr__(self) -> str: ...

class TensorCalibration:
    """What samples said about one tensor."""

    @property
    def subgraph(self) -> int: ...
    @property
    def tensor(self) -> int:
        """Number in its subgraph."""

    @property
    def name(self) -> str: ...
    @property
    def elements(self) -> int:
        """Finite values seen."""

    @property
    def not_finite(self) -> int:
        """NaN and infinite values seen."""

    @property
    def min(self) -> float: ...
    @property
    def max(self) -> float: ...
    def __repr__(self) -> str: ...

class Calibration:
    """
    Statistics of a model's float tensors over samples. Merging is exact, pickling works.
    """

    def __init__(self) -> None: ...
    def merge(self, later: Calibration) -> None:
        """Adds samples that come after these."""

    @property
    def samples(self) -> int: ...
    @property
    def histograms(self) -> bool:
        """Whether it can serve every method."""

    @property
    def gram_matrices(self) -> bool:
        """Whether it can serve rounding='comq'."""

    @property
    def memory_bytes(self) -> int:
        """Memory it takes, as charged to its budget."""

    def is_of(self, model: Model) -> bool:
        """Whether it was made from this model."""

    def tensors(self) -> list[TensorCalibration]:
        """All float tensors, also those no sample reached."""

    def range(
        self, subgraph: int, tensor: int, rule: CalibrationRule = ..., bits: int = 8, symmetric: bool = False
    ) -> tuple[float, float] | None:
        """
        (min, max) for integers of these bits; None when no sample reached the tensor.
        """

    def to_bytes(self) -> bytes:
        """
        To be kept or sent to another process. Equal calibrations give equal bytes.
        """

    @staticmethod
    def from_bytes(bytes: Buffer | NDArray[Any], budget: Budget | int | str | None = None) -> Calibration:
        """What to_bytes() returned."""

    def __getstate__(self) -> bytes: ...
    def __setstate__(self, arg: bytes, /) -> None: ...
    def __repr__(self) -> str: ...

def calibration_of(calibrated_model: Model, budget: Budget | int | str | None = None) -> Calibration:
    """
    The ranges that the file of a calibrated model has for its tensors, as if one sample had said them.
    """

class Calibrator:
    """
    Runs single samples and records what the tensors hold: what a worker of a cluster does.
    """

    def __init__(
        self,
        model: Model,
        num_threads: int = 1,
        budget: Budget | None = None,
        histograms: bool = True,
        keep_state: bool = False,
        gram_matrices: bool = False,
    ) -> None: ...
    def interpreter(self, subgraph: int = 0) -> Interpreter:
        """To resize the inputs of a subgraph and set their values."""

    def add_sample(self, subgraph: int = 0) -> None:
        """Runs and records; a run that fails leaves no trace."""

    def run_sample(self, subgraph: int, inputs: object) -> None:
        """The same of inputs as SampleReader.next() returns them."""

    def calibration(self) -> Calibration:
        """The statistics so far."""

    @property
    def first_not_finite(self) -> tuple[int, int, int] | None:
        """
        Sample, subgraph and tensor where NaN or infinity first came up, or None.
        """

    def clear(self) -> None:
        """Forgets all samples."""

    @property
    def statistics_bytes(self) -> int:
        """
        Memory of the statistics besides the interpreters, known from the start.
        """

class QuantizationMode(enum.Enum):
    """How the numbers of a node are stored and computed with."""

    FLOAT = 0
    """Stays as it is."""

    FLOAT16 = 1
    """Weights are stored as float16."""

    DYNAMIC_RANGE = 2
    """int8 weights; activations are quantized while running."""

    INT8 = 3
    """int8 weights and activations."""

    INT16X8 = 4
    """int8 weights, int16 activations."""

    WEIGHT_ONLY_INT8 = 5
    """int8 weights that are widened before use."""

    WEIGHT_ONLY_INT4 = 6
    """The same with 4 bits."""

    DYNAMIC_INT4 = 7
    """DYNAMIC_RANGE with weights of 4 bits."""

    DYNAMIC_INT2 = 8
    """The same with 2 bits."""

class WeightRounding(enum.Enum):
    """How weights become integers."""

    NEAREST = 0
    """Scales hold the largest weight."""

    MSE = 1
    """Scales cut off the rarest weights where that loses less."""

    COMQ = 2
    """What changes the results of a layer least; needs samples."""

class WeightRotation(enum.Enum):
    """How rows of weights are rotated."""

    NONE = 0
    """Not at all."""

    HADAMARD = 1
    """With the custom op aeq.hadamard_rotation."""

    DECOMPOSED_HADAMARD = 2
    """With builtin ops."""

def parse_weight_rounding(name: str, what: str = "rounding") -> WeightRounding:
    """The rounding called so."""

class RecipeRule:
    """What one line of a recipe asks for."""

    def __init__(self) -> None: ...
    @property
    def op(self) -> str:
        """Name of an op; empty or '*': any."""

    @op.setter
    def op(self, arg: str, /) -> None: ...
    @property
    def name(self) -> str:
        """Pattern, searched in the names of a node's outputs; empty: any."""

    @name.setter
    def name(self, arg: str, /) -> None: ...
    @property
    def node(self) -> int:
        """Number of a node in subgraph 0; -1: any."""

    @node.setter
    def node(self, arg: int, /) -> None: ...
    @property
    def mode(self) -> QuantizationMode: ...
    @mode.setter
    def mode(self, arg: QuantizationMode, /) -> None: ...
    @property
    def optional(self) -> bool:
        """May match no node; otherwise that is an error."""

    @optional.setter
    def optional(self, arg: bool, /) -> None: ...
    @property
    def block_size(self) -> int:
        """Weights that share a scale; 0: a channel."""

    @block_size.setter
    def block_size(self, arg: int, /) -> None: ...
    @property
    def symmetric(self) -> bool:
        """Weights have no zero points."""

    @symmetric.setter
    def symmetric(self, arg: bool, /) -> None: ...
    @property
    def min_weight_elements(self) -> int | None:
        """As of QuantizeOptions; None: that."""

    @min_weight_elements.setter
    def min_weight_elements(self, arg: int | None, /) -> None: ...
    @property
    def rounding(self) -> WeightRounding | None:
        """As of QuantizeOptions; None: that."""

    @rounding.setter
    def rounding(self, arg: WeightRounding | None, /) -> None: ...
    @property
    def rotation(self) -> WeightRotation:
        """Of the rows of dense layers' weights."""

    @rotation.setter
    def rotation(self, arg: WeightRotation, /) -> None: ...
    def __repr__(self) -> str: ...

def rule_for_tensor(name: str, mode: QuantizationMode) -> RecipeRule:
    """A rule for the nodes that compute the tensor of this name, and no other."""

def parse_quantization_mode(name: str, what: str = "mode") -> QuantizationMode:
    """The mode called so; '-' and '_' are the same."""

def parse_calibration_method(name: str, what: str = "method") -> CalibrationMethod:
    """The method called so; '-' and '_' are the same."""

def parse_io_type(name: str, what: str) -> DType:
    """The type called so, of a quantized model's inputs or outputs."""

def is_integer(mode: QuantizationMode) -> bool:
    """Whether a mode has integer activations, and so needs samples."""

def needs_histograms(method: CalibrationMethod) -> bool:
    """Whether a method needs the histograms of samples."""

class QuantizerOptions:
    """What a quantized model is to be."""

    def __init__(self) -> None: ...
    @property
    def mode(self) -> QuantizationMode: ...
    @mode.setter
    def mode(self, arg: QuantizationMode, /) -> None: ...
    @property
    def input_type(self) -> DType: ...
    @input_type.setter
    def input_type(self, arg: DType, /) -> None: ...
    @property
    def output_type(self) -> DType: ...
    @output_type.setter
    def output_type(self, arg: DType, /) -> None: ...
    @property
    def allow_float(self) -> bool: ...
    @allow_float.setter
    def allow_float(self, arg: bool, /) -> None: ...
    @property
    def per_channel(self) -> bool: ...
    @per_channel.setter
    def per_channel(self, arg: bool, /) -> None: ...
    @property
    def per_channel_dense(self) -> bool: ...
    @per_channel_dense.setter
    def per_channel_dense(self, arg: bool, /) -> None: ...
    @property
    def calibration_rule(self) -> CalibrationRule: ...
    @calibration_rule.setter
    def calibration_rule(self, arg: CalibrationRule, /) -> None: ...
    def set_calibration(self, calibration: Calibration) -> None:
        """Made before, instead of samples."""

    @property
    def recipe(self) -> list[RecipeRule]:
        """Assign a list; changes to the list that is read have no effect."""

    @recipe.setter
    def recipe(self, arg: Sequence[RecipeRule], /) -> None: ...
    @property
    def bias_correction(self) -> bool: ...
    @bias_correction.setter
    def bias_correction(self, arg: bool, /) -> None: ...
    @property
    def ranges_only(self) -> bool: ...
    @ranges_only.setter
    def ranges_only(self, arg: bool, /) -> None: ...
    @property
    def keep_state(self) -> bool: ...
    @keep_state.setter
    def keep_state(self, arg: bool, /) -> None: ...
    @property
    def sparsify(self) -> bool: ...
    @sparsify.setter
    def sparsify(self, arg: bool, /) -> None: ...
    @property
    def quantized_name(self) -> str: ...
    @quantized_name.setter
    def quantized_name(self, arg: str, /) -> None: ...
    @property
    def equalize(self) -> bool: ...
    @equalize.setter
    def equalize(self, arg: bool, /) -> None: ...
    @property
    def min_weight_elements(self) -> int: ...
    @min_weight_elements.setter
    def min_weight_elements(self, arg: int, /) -> None: ...
    @property
    def rounding(self) -> WeightRounding: ...
    @rounding.setter
    def rounding(self, arg: WeightRounding, /) -> None: ...
    @property
    def num_threads(self) -> int: ...
    @num_threads.setter
    def num_threads(self, arg: int, /) -> None: ...
    @property
    def budget(self) -> Budget: ...
    @budget.setter
    def budget(self, arg: Budget | None, /) -> None: ...
    def __repr__(self) -> str: ...

def apply_recipe(json: str, options: QuantizerOptions) -> None:
    """
    Adds the rules of a recipe in JSON, Leadline's own or ai-edge-quantizer's; its settings replace those of options.
    """

class CalibrateJob:
    """leadline.calibrate() before it starts."""

    def __init__(
        self,
        model: Model,
        num_threads: int = 1,
        budget: Budget | None = None,
        histograms: bool = True,
        keep_state: bool = False,
        gram_matrices: bool = False,
    ) -> None: ...
    def run(
        self, samples: SampleSource, observer: Callable[[str, int, int | None], Any] | None = None
    ) -> tuple[Calibration, list[tuple[str, str, int | None, str | None]]]:
        """
        Runs all samples. Returns the calibration and what was found about them.
        """

    def plan(self, samples: SampleSource | None = None) -> JobPlan:
        """What it takes, phase by phase."""

class QuantizeJob:
    """leadline.quantize() before it starts."""

    def __init__(self, model: Model, options: QuantizerOptions) -> None: ...
    @property
    def needs_samples(self) -> bool:
        """Whether run() has to be given samples."""

    @property
    def needs_gram_matrices(self) -> bool:
        """Whether weights are rounded by Gram matrices."""

    @property
    def uses_samples(self) -> bool:
        """Whether run() reads samples that it is given."""

    @property
    def unmatched_rules(self) -> list[str]:
        """Rules of the recipe that match no node."""

    def run(
        self, samples: SampleSource | None = None, observer: Callable[[str, int, int | None], Any] | None = None
    ) -> tuple[bytes, list[tuple[str, str, int | None, str | None]]]:
        """
        Returns the quantized .tflite file and what was found about the samples.
        """

    def run_to_model(
        self, samples: SampleSource | None = None, observer: Callable[[str, int, int | None], Any] | None = None
    ) -> tuple[Model, list[tuple[str, str, int | None, str | None]]]:
        """
        The same with a model to run, in memory that goes back to the system with it.
        """

    def plan(self, samples: SampleSource | None = None) -> JobPlan:
        """What it takes, phase by phase."""

def equalized_model(model: Model, budget: Budget | None = None) -> Model:
    """
    The float model with even channels that quantizing with `equalize` begins with.
    """

class DebugJob:
    """leadline.debug() before it starts."""

    def __init__(
        self,
        float_model: Model,
        quantized_model: Model,
        num_threads: int = 1,
        budget: Budget | None = None,
        own_error: bool = True,
        worst_channels: int = 8,
        histograms: int = 16,
        equalized: bool = False,
        effects: bool = True,
        suggestions: bool = True,
    ) -> None: ...
    def run(
        self, samples: SampleSource, observer: Callable[[str, int, int | None], Any] | None = None
    ) -> tuple[DebugResult, int]:
        """
        Runs all samples. Returns the result and the most bytes that were charged at a time.
        """

    def plan(self, samples: SampleSource | None = None) -> JobPlan:
        """What it takes, phase by phase."""

class TuneJob:
    """leadline.tune() before it starts."""

    def __init__(
        self,
        model: Model,
        options: QuantizerOptions,
        keep: QuantizationMode,
        target: float,
        max_trials: int,
        metric: object,
        on_trial: object | None = None,
        max_seconds: float = 0.0,
        held_out: float = 0.25,
        front_trials: int = 4,
    ) -> None: ...
    def run(
        self,
        calibration: SampleSource,
        debug: SampleSource | None = None,
        held_out: SampleSource | None = None,
        observer: object | None = None,
    ) -> dict[str, Any]:
        """Searches. Returns the fields of leadline.TuneResult."""

    def plan(
        self,
        calibration: SampleSource | None = None,
        debug: SampleSource | None = None,
        held_out: SampleSource | None = None,
    ) -> JobPlan:
        """What it takes, phase by phase."""

class SampleSource:
    """Samples one after the other, one in memory at a time."""

    @property
    def size(self) -> int | None:
        """How many samples there are, or None where that is not known."""

    @property
    def peak_bytes(self) -> int:
        """The most bytes it holds at a time."""

    def __repr__(self) -> str: ...

def python_samples(reader: object) -> SampleSource:
    """Samples of an object with the methods next, size, sizes and rewind."""

def open_samples(
    path: str,
    model: Model,
    budget: Budget | None,
    image_size: tuple[int, int],
    mean: Sequence[float],
    scale: Sequence[float],
    colors: str,
    resize: str,
    labels: str,
    classes: str,
) -> SampleSource:
    """Samples of numpy's files or pictures."""

def reads_pictures() -> bool:
    """Whether this build can read pictures."""

class SampleReader:
    """Samples brought to the form a model takes, and checked on the way."""

    def __init__(self, model: Model, source: SampleSource, limit: int = 0, lint: bool = True) -> None: ...
    def next(
        self,
    ) -> tuple[int, list[tuple[DType, tuple[int, ...], bytes]], list[tuple[DType, tuple[int, ...], bytes]]] | None:
        """The next sample as (subgraph, inputs, targets), or None."""

    def read_all(self) -> None:
        """Reads and checks what is left."""

    def look_at(self, calibration: Calibration, first_not_finite: tuple[int, int, int] | None) -> None:
        """Adds what shows when the samples were run."""

    @property
    def count(self) -> int:
        """Samples read so far."""

    @property
    def size(self) -> int | None:
        """Of all samples, or None."""

    @property
    def findings(self) -> list[tuple[str, str, int | None, str | None]]:
        """What was found, each as (severity, message, sample, input)."""

class EvaluateOptions:
    """How a model is evaluated."""

    def __init__(
        self,
        *,
        metric: str = "accuracy",
        top_k: int = 1,
        output: int = 0,
        reference: Model | None = None,
        function: object | None = None,
        num_threads: int = 1,
        max_samples: int = 0,
        per_sample: bool = False,
        max_confusion_classes: int = 256,
        budget: Budget | None = None,
    ) -> None: ...

class EvaluateResult:
    """What evaluating a model came to."""

    @property
    def metric(self) -> str:
        """Name of the metric."""

    @property
    def value(self) -> float:
        """The mean of the metric."""

    @property
    def samples(self) -> int:
        """How many samples were run."""

    @property
    def answers(self) -> int:
        """Labels that were compared."""

    @property
    def correct(self) -> int:
        """How many of them the model got right."""

    @property
    def classes(self) -> int:
        """Rows of the table of answers; 0: there is none."""

    @property
    def confusion(self) -> list[int]:
        """Answers by label, row after row."""

    @property
    def per_sample(self) -> list[float]:
        """The metric of each sample, where it was asked for."""

    @property
    def seconds(self) -> float:
        """How long it took."""

    @property
    def counted_peak_bytes(self) -> int:
        """The most memory that was charged at a time."""

    @property
    def findings(self) -> list[tuple[str, str, int | None, str | None]]:
        """
        What was found about the samples, each as (severity, message, sample, input).
        """

    def to_json(self) -> str:
        """All of it as JSON."""

    def __str__(self) -> str: ...

class EvaluateJob:
    """Runs samples on threads of this process."""

    def __init__(self, model: Model, options: EvaluateOptions) -> None: ...
    def plan(self, samples: SampleSource | None) -> JobPlan:
        """What it will take."""

    def admit(self, samples: SampleSource | None) -> None:
        """Raises BudgetError with the plan when it does not fit."""

    def run(self, samples: SampleSource, observer: object | None = None) -> EvaluateResult:
        """Runs all samples."""

class Evaluator:
    """Runs single samples and scores them."""

    def __init__(self, model: Model, options: EvaluateOptions) -> None: ...
    def run(
        self, index: int, subgraph: int, inputs: object, targets: object
    ) -> tuple[float, list[tuple[int, int]], int]:
        """
        The score of a sample: value, pairs of label and answer, how many are right.
        """

class ScoreSum:
    """Sums up scores in the order of the samples."""

    def __init__(self, options: EvaluateOptions) -> None: ...
    def add(self, score: tuple[float, Sequence[tuple[int, int]], int]) -> None:
        """Adds the score of the next sample."""

    def result(self, seconds: float) -> EvaluateResult:
        """The result so far, which took this long."""
