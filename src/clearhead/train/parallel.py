"""Training with several processes: what they agree on, and how they share a model. torch.distributed does the work.

    torchrun --nproc-per-node 4 -m clearhead train RECIPE

A step has a fixed number of micro-batches, which are divided among the processes: it is the same step for any number of
processes. What all of them must know (targets of a step, whether to stop) is a sum over all. The main process, that of
rank 0, writes the run.

FSDP and its sharded tensors are imported where they are needed, since that takes half as long as importing torch.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed import PrefixStore, Store, TCPStore  # type: ignore[attr-defined]  # public, but not to mypy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint as checkpoint_activations_of

from clearhead.config import TrainConfig, UserError, require
from clearhead.data.batches import Batch
from clearhead.data.plan import randoms
from clearhead.device import Machine, choose_device
from clearhead.model import Model

if TYPE_CHECKING:
    from clearhead.train.loss import Objective

T = TypeVar("T")
TIMEOUT = timedelta(hours=12)  # of waiting for other processes: the main one may have to tokenize a large corpus first


@dataclass(frozen=True)
class Group:
    """The processes that train one model together, as one of them sees it. All of them must call its methods."""

    rank: int = 0
    world: int = 1  # number of processes
    launch: str = ""  # id of the torchrun that started them; empty: this process was started without torchrun
    restarted: bool = False  # by torchrun, after one of the processes had died

    @property
    def is_main(self) -> bool:
        """Whether this is the process that writes the run."""
        return self.rank == 0

    def sum(self, *numbers: float) -> list[float]:
        """Each number summed over all processes, in the order of their ranks: all get the same bits."""
        if self.world == 1:
            return list(numbers)
        gathered = self.all_gather(torch.tensor(numbers, dtype=torch.float64))
        return list(torch.stack(gathered).sum(0).tolist())

    def all_gather(self, tensor: Tensor) -> list[Tensor]:
        """The tensors of all processes, which must be on the CPU and have the same shape."""
        if self.world == 1:
            return [tensor]
        gathered = [torch.empty_like(tensor) for _ in range(self.world)]
        dist.all_gather(gathered, tensor)
        return gathered

    def main_first(self, work: Callable[[], T]) -> T:
        """Call a function in the main process, then in all others, which find the files that it has written."""
        if self.is_main:
            result = work()
            self.sum(0)
            return result
        self.sum(0)
        return work()

    def split(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Every world-th batch; blank ones make the number equal, because all processes must call the model."""
        while one_each := list(itertools.islice(batches, self.world)):
            yield one_each[self.rank] if self.rank < len(one_each) else one_each[0].blank()

    def gather(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Full tensors for the main process, nothing for the others; shards are collected one tensor at a time."""
        gathered = {}
        for name, tensor in tensors.items():
            full = full_tensor(tensor)
            if self.is_main:
                gathered[name] = full.cpu() if is_sharded(tensor) else full
        return gathered

    def __str__(self) -> str:
        return f", {self.world} processes" if self.world > 1 else ""


SINGLE_PROCESS = Group()


# --- joining the other processes --------------------------------------------------------------------------------------


@contextmanager
def join_group(config: TrainConfig) -> Iterator[Group]:
    """The group in which torchrun has started this process, or a group of one."""
    if not dist.is_torchelastic_launched():
        yield SINGLE_PROCESS
        return
    rank = int(os.environ["RANK"])
    world = int(os.environ["WORLD_SIZE"])
    store = rendezvous_store(rank, world)
    dist.init_process_group(choose_backend(config), store=store, rank=rank, world_size=world, timeout=TIMEOUT)
    group = Group(rank, world, os.environ["TORCHELASTIC_RUN_ID"])
    restarts = group.sum(int(os.environ["TORCHELASTIC_RESTART_COUNT"]))[0]  # nodes may have counted differently
    try:
        yield replace(group, restarted=restarts > 0)
    except UserError:
        if count_errors(store, 1) > 1:  # another process has reported it already
            raise SystemExit(1) from None
        raise
    except RuntimeError:
        if count_errors(store, 0) > 0:  # another process has reported why it ended
            raise SystemExit(1) from None
        raise
    dist.destroy_process_group()


def rendezvous_store(rank: int, world: int) -> Store:
    """The store in which the processes find each other's addresses.

    On one node torchrun reuses its store after a restart, with the addresses of the dead processes still in it; keys
    that begin with the number of the restart keep old and new apart. On several nodes the numbers can differ between
    nodes, so each start needs a store of its own.
    """
    host = os.environ["MASTER_ADDR"]
    port = int(os.environ["MASTER_PORT"])
    if os.environ["TORCHELASTIC_USE_AGENT_STORE"] != "True":
        return TCPStore(host, port, world, is_master=rank == 0)
    nodes = int(os.environ["GROUP_WORLD_SIZE"])
    restarts = int(os.environ["TORCHELASTIC_MAX_RESTARTS"])
    require(
        nodes == 1 or restarts == 0,
        f"torchrun --max-restarts={restarts} on {nodes} nodes needs the environment variable "
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 and --rdzv-backend=c10d; set both on every node",
    )
    store = TCPStore(host, port, world, is_master=False)
    return PrefixStore(f"restart-{os.environ['TORCHELASTIC_RESTART_COUNT']}", store)


def choose_backend(config: TrainConfig) -> str:
    """The torch.distributed backend for `train.device`; with GPUs, each process takes the one of its local rank."""
    device = choose_device(config.device)
    if device.type == "cpu":
        return "gloo"
    require(
        device.type == "cuda" and device.index is None,
        f"train.device = {config.device!r} is one device for all processes; use train.device=cuda or cpu",
    )
    local_rank = int(os.environ["LOCAL_RANK"])
    gpus = torch.cuda.device_count()
    require(
        local_rank < gpus,
        f"there are more processes than the {gpus} GPUs here; use torchrun --nproc-per-node={gpus}, or "
        "train.device=cpu",
    )
    torch.cuda.set_device(local_rank)
    return "cpu:gloo,cuda:nccl"


def count_errors(store: Store, new: int) -> int:
    """The number of processes that have ended with a UserError, after adding `new` to it."""
    try:
        return store.add("errors", new)
    except dist.DistNetworkError:  # the process that ran the store has ended: report this error
        return new


# --- distributing a model ---------------------------------------------------------------------------------------------


def parallelise(objective: Objective, machine: Machine, group: Group, config: TrainConfig) -> nn.Module:
    """The objective as each process must call it, on its device; gradients are averaged over the processes."""
    if not group.launch:
        return objective.to(machine.device)
    if config.parallel == "ddp":
        return DistributedDataParallel(objective.to(machine.device), gradient_as_bucket_view=True)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    mesh = init_device_mesh(machine.device.type, (group.world,))
    # Weights of blocks are communicated in the precision they compute in; the others, which make the residual stream,
    # in float32. For that norms must accept a float32 stream with bfloat16 gains: they do under autocast on a GPU, but
    # not on a CPU.
    precision = machine.precision if machine.device.type == "cuda" else torch.float32
    policy = MixedPrecisionPolicy(precision, reduce_dtype=torch.float32, cast_forward_inputs=False)
    for block in objective.model.blocks():
        fully_shard(block, mesh=mesh, mp_policy=policy)
    fully_shard(objective, mesh=mesh)
    return objective


def gradient_sync(wrapped: nn.Module, last: bool) -> AbstractContextManager[None]:
    """The context for the forward and backward pass of a micro-batch, `last` for the last one of a step.

    DDP synchronises gradients with the last one only. FSDP does so with each: to keep full gradients until the last
    one would take the memory that FSDP is there to save.
    """
    if isinstance(wrapped, DistributedDataParallel) and not last:
        return wrapped.no_sync()
    return nullcontext()


def checkpoint_activations(model: Model) -> None:
    """Activation checkpointing: each block keeps only its input and recomputes its activations in the backward pass."""
    for block in model.blocks():
        block.forward = partial(checkpoint_activations_of, block.forward, use_reentrant=False)  # type: ignore[method-assign]


def is_sharded(tensor: Tensor) -> bool:
    """Whether this process has only a shard of a tensor."""
    if not dist.is_initialized():
        return False
    from torch.distributed.tensor import DTensor

    return isinstance(tensor, DTensor)


def full_tensor(tensor: Tensor) -> Tensor:
    """The full tensor of a sharded one; any other as it is."""
    return tensor.full_tensor() if is_sharded(tensor) else tensor  # type: ignore[attr-defined]


def shard_like(tensor: Tensor, like: Tensor) -> Tensor:
    """A full tensor, sharded as `like` is if that has the same shape and is sharded; on its device in any case."""
    if is_sharded(tensor) or not is_sharded(like) or tensor.shape != like.shape:
        return tensor.to(like.device)
    from torch.distributed.tensor import DTensor, distribute_tensor

    assert isinstance(like, DTensor)
    return distribute_tensor(tensor.to(like.device), like.device_mesh, like.placements, src_data_rank=None)


def seed_process(seed: int, step: int, rank: int) -> None:
    """Seed this process with a number that depends on its rank: each process has its own dropout."""
    torch.manual_seed(int(randoms(1, seed, step, rank)[0]))


@contextmanager
def unsharded(wrapped: nn.Module) -> Iterator[None]:
    """With FSDP, gather the weights outside of the blocks: then the model can be called, and not only `wrapped`."""
    if not dist.is_initialized():
        yield
        return
    from torch.distributed.fsdp import FSDPModule

    if not isinstance(wrapped, FSDPModule):
        yield
        return
    wrapped.unshard()
    try:
        yield
    finally:
        wrapped.reshard()
