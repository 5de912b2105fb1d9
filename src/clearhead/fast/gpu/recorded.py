"""Search on a GPU: a step is recorded once as a CUDA graph and replayed for every token.

A step is some hundred kernels of a few microseconds; launched from Python one by one, they take ten times as long.
After the prefill, which is recorded too (prefill.py), the caches and the search are copied into memory of fixed size,
which belongs to a recorded step for that size and is used by all searches of that size.
"""

from __future__ import annotations

import contextlib
import copy
import weakref
from collections import OrderedDict
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Generic

import torch
from torch import Tensor, nn

from clearhead.decode.sampling import rounded_up
from clearhead.decode.steps import S
from clearhead.fast.gpu.fixed import FixedState
from clearhead.fast.gpu.graphs import record
from clearhead.fast.gpu.search import read
from clearhead.fast.kernels import usable
from clearhead.fast.torch_private import copy_all
from clearhead.model import DecoderOnly, EncoderDecoder, State
from clearhead.model.norm import to_float32

if TYPE_CHECKING:
    from clearhead.fast.gpu.decode_step import DecodeStep
    from clearhead.fast.gpu.fused import FusedModel
    from clearhead.fast.gpu.prefill import RecordedPrefills

CHECK_EVERY = 4  # steps between two questions to the GPU whether a search has ended
KEPT_RECORDINGS = 6  # recorded steps, each with its memory; the one used longest ago is dropped

Model = EncoderDecoder | DecoderOnly


class RecordedSteps(Generic[S]):
    """The steps of searches of one size, as a CUDA graph."""

    def __init__(self, model: RecordingModel, search: S, state: FixedState) -> None:
        self.model = model
        self.search = search
        self.state = state
        self.fused = model.fused_step(state)
        self.check_every = 1 if self.fused is None else CHECK_EVERY  # a fused step may be beyond the last position
        self.graph: torch.cuda.CUDAGraph | None = None
        self.prefilled: weakref.ref[State] | None = None  # the state of the prefill, which a search keeps until it ends

    @property
    def busy(self) -> bool:
        """Whether a search still uses these buffers, for example a stream that was not read to its end."""
        return self.prefilled is not None and self.prefilled() is not None

    def restart(self, search: S, state: State) -> None:
        """Continue another search, after its prefill."""
        self.prefilled = weakref.ref(state)
        copy_all(self.search.tensors(), search.tensors())
        self.state.copy_from(state)
        if self.fused is not None:
            self.fused.restart()

    def read(self, logits: Tensor) -> None:
        """Let the search choose the next tokens by their logits (B, V)."""
        read(self.search, to_float32(logits))

    def __call__(self) -> None:
        """Take a step: the first one kernel by kernel, which lets them choose their workspaces; then by the graph."""
        if self.graph is not None:
            self.graph.replay()
            return
        self.compute()
        self.graph, _ = record(self.compute)

    def compute(self) -> None:
        """The step itself."""
        step = self.fused
        if self.search.parents is not None:
            (step or self.state).reorder(self.search.parents)
        ids = self.search.next_ids
        self.read(step(ids) if step else self.model.step(ids[:, None], self.state))


class RecordingModel:
    """A model on a GPU that prefills in `dtype`, and whose decode steps are recorded."""

    def __init__(self, model: Model, dtype: torch.dtype, fused: bool = True) -> None:
        self.reference = weakref.ref(model)
        self.dtype = dtype
        self.fused = fuse(model, dtype) if fused else None
        self.prefills: RecordedPrefills | None = None
        self.recorded: OrderedDict[Hashable, RecordedSteps[Any]] = OrderedDict()

    @property
    def model(self) -> Model:
        """The model, which this object does not keep alive."""
        model = self.reference()
        assert model is not None
        return model

    def autocast(self) -> contextlib.AbstractContextManager[Any]:
        """A context in which matrix products are computed in `dtype`."""
        wanted = self.dtype != next(self.model.parameters()).dtype
        return torch.autocast("cuda", self.dtype, cache_enabled=False) if wanted else contextlib.nullcontext()

    @torch.inference_mode()
    def start(self, *inputs: Any) -> tuple[Tensor, State]:
        """The model's `start`, with its positional arguments."""
        if self.fused is None:
            with self.autocast():
                return self.model.start(*inputs)
        if self.prefills is None:
            from clearhead.fast.gpu.prefill import RecordedPrefills

            self.prefills = RecordedPrefills(self.fused)
        return (self.prefills.start_target if self.fused.encoder else self.prefills.start_text)(*inputs)

    def fused_step(self, state: FixedState) -> DecodeStep | None:
        """The decode step in few kernels, if they can compute it."""
        if self.fused is None:
            return None
        from clearhead.fast.gpu.decode_step import DecodeStep

        return DecodeStep(self.fused, state)

    @torch.inference_mode()
    def step(self, ids: Tensor, state: State) -> Tensor:
        """The model's `step`."""
        with self.autocast():
            return self.model.step(ids, state)

    def steps(self, search: S, state: State) -> RecordedSteps[S]:
        """Return the steps of a search after the prefill."""
        capacity = rounded_up(state.length + search.ending.longest + CHECK_EVERY)
        source = 0 if state.memory is None else rounded_up(state.memory.size(1))
        shapes = tuple(tuple(t.shape) for t in search.tensors())
        key = (type(search), search.key, shapes, capacity, source, state.hypotheses)
        steps: RecordedSteps[S] | None = self.recorded.pop(key, None)
        if steps is None or steps.busy:
            steps = RecordedSteps(self, copy.deepcopy(search), FixedState.for_search(state, capacity, source))
        self.recorded[key] = steps  # the newest is the last
        if len(self.recorded) > KEPT_RECORDINGS:
            self.recorded.popitem(last=False)
        steps.restart(search, state)
        return steps

    def unrecorded(self) -> UnrecordedModel:
        """Return a decoder in the same precision for rows that join and leave between two steps."""
        return UnrecordedModel(self)


def fuse(model: Model, dtype: torch.dtype) -> FusedModel | None:
    """The model in few kernels, where they can compute it."""
    if not usable(next(model.parameters())):
        return None
    from clearhead.fast.gpu.fused import FusedModel, can_fuse

    return FusedModel(model, dtype) if can_fuse(model) else None


# model -> its decoder, for each model that has decoded on a GPU
RECORDING: weakref.WeakKeyDictionary[nn.Module, RecordingModel] = weakref.WeakKeyDictionary()


class UnrecordedModel:
    """A model on a GPU in the same precision, without recorded steps: rows may join and leave a state of it."""

    def __init__(self, recording: RecordingModel) -> None:
        self.recording = recording

    def start(self, *inputs: Any) -> tuple[Tensor, State]:
        """The model's `start`, with its positional arguments."""
        with self.recording.autocast():
            return self.recording.model.start(*inputs)

    def step(self, ids: Tensor, state: State, real: Tensor | None = None) -> Tensor:
        """The model's `step`."""
        with self.recording.autocast():
            return self.recording.model.step(ids, state, real)


def recording_model(model: Model, fused: bool) -> RecordingModel:
    """Return the decoder of a model, with its present weights."""
    if model not in RECORDING:
        set_precision(model, fast_dtype(), fused)
    recording = RECORDING[model]
    if recording.fused is not None:
        recording.fused.refresh()
    return recording


def set_precision(model: Model, dtype: torch.dtype | None, fused: bool = True) -> None:
    """Let a model on a GPU decode with matrices and caches in this dtype; None: in the dtype of its weights."""
    own = next(model.parameters()).dtype
    RECORDING[model] = RecordingModel(model, dtype if dtype is not None and own == torch.float32 else own, fused)


def fast_dtype() -> torch.dtype | None:
    """bfloat16, if this GPU has units for it; None: the dtype of the weights."""
    return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else None
