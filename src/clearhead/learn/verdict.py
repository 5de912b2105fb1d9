"""What a check has found."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Verdict:
    """The claims of a check that hold, and the first that does not."""

    passed: list[str]
    failed: str = ""  # the claim that does not hold
    problem: str = ""  # what is wrong
    detail: str = ""  # where the numbers differ, if the problem has another name
    hint: str = ""
    lines: list[str] = field(default_factory=list)  # the student's lines where it happened
    mistake: str = ""  # the name of the mistake, if it is recognised
    printed: str = ""  # what the student's code printed

    @property
    def right(self) -> bool:
        """Whether nothing is wrong."""
        return not self.failed
