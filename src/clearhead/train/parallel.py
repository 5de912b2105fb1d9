"""More than one process: who there is, what they agree on, how they share a model. torch.distributed does the work.

    torchrun --nproc-per-node 4 -m clearhead train RECIPE

A step has a fixed number of micro-batches, which the processes share; so it is the same step however many there are.
Whatever all must know (tokens of a step, whether to stop) is a sum over all; the first process writes, for all.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed import PrefixStore, Store, TCPStore  # type: ignore[attr-defined]  # public, but not to mypy
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from clearhead.config import TrainConfig, UserError, require
from clearhead.data.batches import Batch
from clearhead.data.plan import randoms
from clearhead.device import Machine, choose_device
from clearhead.model import DecoderOnly, EncoderDecoder, EncoderOnly
from clearhead.train.loss import Objective

T = TypeVar("T")
PATIENCE = timedelta(hours=12)  # with each other: the first may have a large corpus to tokenize


@dataclass(frozen=True)
class Group:
    """The processes that train one model together, seen from one of them. Its methods must be called by all."""

    rank: int = 0
    world: int = 1
    launch: str = ""  # the name of the torchrun that started them; empty: nobody did, this process is alone
    restarted: bool = False  # by torchrun, after one of them had died

    @property
    def first(self) -> bool:
        """Whether this is the process that writes."""
        return self.rank == 0

    def sum(self, *numbers: float) -> list[float]:
        """Each number summed over all processes, in the order of their ranks: all get the same bits."""
        if self.world == 1:
            return list(numbers)
        every = self.each(torch.tensor(numbers, dtype=torch.float64))
        return list(torch.stack(every).sum(0).tolist())

    def each(self, tensor: Tensor) -> list[Tensor]:
        """The tensors of all processes, which must have the same shape and lie in main memory."""
        if self.world == 1:
            return [tensor]
        every = [torch.empty_like(tensor) for _ in range(self.world)]
        dist.all_gather(every, tensor)
        return every

    def in_turn(self, work: Callable[[], T]) -> T:
        """The first process works, then the others do the same, and find what it has written."""
        if self.first:
            result = work()
            self.sum(0)
            return result
        self.sum(0)
        return work()

    def deal(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """The part of the batches for this process; the last may be blank, since all call a model at the same time."""
        while hand := list(itertools.islice(batches, self.world)):
            yield hand[self.rank] if self.rank < len(hand) else hand[0].blank()

    def gather(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """For the first process the whole of tensors that all have or share, one after the other; else nothing."""
        whole_ones = {}
        for name, tensor in tensors.items():
            all_of_it = whole(tensor)
            if self.first:
                whole_ones[name] = all_of_it.cpu() if isinstance(tensor, DTensor) else all_of_it
        return whole_ones

    def __str__(self) -> str:
        return f", {self.world} processes" if self.world > 1 else ""


ALONE = Group()


# --- finding each other -----------------------------------------------------------------------------------------------


@contextmanager
def join_group(config: TrainConfig) -> Iterator[Group]:
    """The group that torchrun has started this process in, or a group of one."""
    if not dist.is_torchelastic_launched():
        yield ALONE
        return
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = open_store(rank, world)
    dist.init_process_group(choose_backend(config), store=store, rank=rank, world_size=world, timeout=PATIENCE)
    group = Group(rank, world, os.environ["TORCHELASTIC_RUN_ID"])
    restarts = group.sum(int(os.environ["TORCHELASTIC_RESTART_COUNT"]))[0]  # nodes may have counted differently
    try:
        yield Group(rank, world, group.launch, restarted=restarts > 0)
    except UserError:
        if count_complaints(store, 1) > 1:  # another process has said it already
            raise SystemExit(1) from None
        raise
    except RuntimeError:
        if count_complaints(store, 0) > 0:  # another process has said why it is gone
            raise SystemExit(1) from None
        raise
    dist.destroy_process_group()


def open_store(rank: int, world: int) -> Store:
    """Where the processes find each other's addresses.

    On one node torchrun keeps the store of the processes that died, addresses and all, and gives it to those that
    follow: names that begin with the number of the restart keep them apart. On several nodes those numbers can differ,
    and only a store of its own for each start will do.
    """
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if os.environ["TORCHELASTIC_USE_AGENT_STORE"] != "True":
        return TCPStore(host, port, world, is_master=rank == 0)
    nodes, restarts = int(os.environ["GROUP_WORLD_SIZE"]), int(os.environ["TORCHELASTIC_MAX_RESTARTS"])
    require(
        nodes == 1 or restarts == 0,
        f"torchrun --max-restarts={restarts} on {nodes} nodes needs the environment variable "
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 and --rdzv-backend=c10d; set both on every node",
    )
    store = TCPStore(host, port, world, is_master=False)
    return PrefixStore(f"restart-{os.environ['TORCHELASTIC_RESTART_COUNT']}", store)


def choose_backend(config: TrainConfig) -> str:
    """How the processes talk to each other; each takes the GPU of its number, if GPUs are to be used."""
    device = choose_device(config.device)
    if device.type == "cpu":
        return "gloo"
    require(
        device.type == "cuda" and device.index is None,
        f"train.device = {config.device!r} is one device for all processes; use train.device=cuda or cpu",
    )
    number, there = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
    require(
        number < there,
        f"there are more processes than the {there} GPUs here; use torchrun --nproc-per-node={there}, or "
        "train.device=cpu",
    )
    torch.cuda.set_device(number)
    return "cpu:gloo,cuda:nccl"


def count_complaints(store: Store, more: int) -> int:
    """How many processes have ended with a message for the user, with so many more."""
    try:
        return store.add("complaints", more)
    except dist.DistNetworkError:  # the store is gone with the process that kept it: speak for yourself
        return more


# --- sharing a model --------------------------------------------------------------------------------------------------


def share(objective: Objective, machine: Machine, group: Group, config: TrainConfig) -> nn.Module:
    """The objective as each process is to call it, on its device; gradients are averaged over the processes."""
    if not group.launch:
        return objective.to(machine.device)
    if config.parallel == "ddp":
        return DistributedDataParallel(objective.to(machine.device), gradient_as_bucket_view=True)
    mesh = init_device_mesh(machine.device.type, (group.world,))
    # Blocks are sent in the precision they compute in; the rest, which makes the residual stream, in float32. For that
    # norms must take a float32 stream and bfloat16 gains, as they do under autocast on a GPU, and not on a CPU.
    sent = machine.precision if machine.device.type == "cuda" else torch.float32
    policy = MixedPrecisionPolicy(sent, reduce_dtype=torch.float32, cast_forward_inputs=False)
    for block in objective.model.blocks():
        fully_shard(block, mesh=mesh, mp_policy=policy)
    fully_shard(objective, mesh=mesh)
    return objective


def gradient_exchange(shared: nn.Module, last: bool) -> AbstractContextManager[None]:
    """What the forward and backward pass of a micro-batch run in.

    DDP exchanges gradients with the last one of a step. FSDP does so with each: to keep whole gradients until the last
    would take the memory that it is there to save.
    """
    if isinstance(shared, DistributedDataParallel) and not last:
        return shared.no_sync()
    return nullcontext()


def checkpoint_blocks(model: EncoderDecoder | DecoderOnly | EncoderOnly) -> None:
    """Have each block keep its input alone, and compute what is inside again on the way back."""
    for block in model.blocks():
        block.forward = partial(checkpoint, block.forward, use_reentrant=False)  # type: ignore[method-assign]


def whole(tensor: Tensor) -> Tensor:
    """A tensor with the parts that other processes hold."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def part_like(tensor: Tensor, like: Tensor) -> Tensor:
    """The part of a whole tensor that this process holds, if `like` is of the same shape and shared; else all of it."""
    if isinstance(tensor, DTensor) or not isinstance(like, DTensor) or tensor.shape != like.shape:
        return tensor.to(like.device)
    return distribute_tensor(tensor.to(like.device), like.device_mesh, like.placements, src_data_rank=None)


def seed_process(seed: int, step: int, rank: int) -> None:
    """Give a process random numbers of its own."""
    torch.manual_seed(int(randoms(1, seed, step, rank)[0]))


@contextmanager
def whole_weights(shared: nn.Module) -> Iterator[None]:
    """Let the model itself be called, not only the objective: what lies outside of its blocks is put together."""
    if not isinstance(shared, FSDPModule):
        yield
        return
    shared.unshard()
    try:
        yield
    finally:
        shared.reshard()
