"""Count what is left out or changed between files and batches, to report it once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Report:
    """Counts of events that concern examples, each with the location of the first one."""

    def __init__(self, counts: Mapping[str, int] | None = None, first: Mapping[str, str] | None = None) -> None:
        self.counts = dict(counts or {})
        self.first = dict(first or {})

    def add(self, what: str, where: str = "", count: int = 1) -> None:
        """Count an event."""
        if count and what not in self.counts and where:
            self.first[what] = where
        if count:
            self.counts[what] = self.counts.get(what, 0) + count

    def lines(self) -> list[str]:
        """One line for each kind of event, for example "3 empty examples dropped (first: train.en:17)"."""
        return [
            f"{count:,} {what}" + (f" (first: {self.first[what]})" if what in self.first else "")
            for what, count in sorted(self.counts.items())
        ]

    def state(self) -> dict[str, Any]:
        """The arguments that `Report(**state)` takes."""
        return {"counts": self.counts, "first": self.first}
