"""Processes that are forked from one that has imported training already, which takes seconds."""

from __future__ import annotations

import multiprocessing

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["clearhead.train.run", "torch._dynamo", "pytest"])
