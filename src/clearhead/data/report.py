"""Count what is left out or changed between files and batches, to report it once."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Report:
    """Counts of events that concern examples, each with the location of the first one."""

    counts: dict[str, int] = field(default_factory=dict)
    first: dict[str, str] = field(default_factory=dict)

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
