"""The results as a table, as JSON and as a plot; the speed relative to each peer comes first."""

from __future__ import annotations

import json
import platform
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from rich.console import Console
from rich.table import Table
from rich.text import Text

from clearhead import __version__
from clearhead.bench.contest import Entry, speed_ratio
from clearhead.bench.rows import OURS, Benchmark
from clearhead.config import UserError
from clearhead.files import require_output, write_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")  # distinguishable by colour-blind people
SUFFIXES = (".png", ".svg", ".pdf")
CASE_WIDTH = 24  # so that the columns of most rows are aligned


@dataclass
class Measured:
    """A row with its entries, or why it was skipped."""

    row: Benchmark
    entries: list[Entry] = field(default_factory=list)
    skipped: str = ""

    def cases(self) -> list[list[Entry]]:
        """Group the entries by case, ours first; cases without a measurement of ours are left out."""
        names = dict.fromkeys(entry.case for entry in self.entries if entry.case)
        groups = [[entry for entry in self.entries if entry.case == name] for name in names]
        return [group for group in groups if group[0].who == OURS and group[0].samples]

    def reasons(self) -> list[str]:
        """Why contestants are missing."""
        return [
            f"{entry.who}{f', {entry.case}' if entry.case else ''}: {entry.reason}"
            for entry in self.entries
            if entry.reason
        ]


def has_peers(group: Sequence[Entry]) -> bool:
    """Whether a case was measured with others, too."""
    return any(entry.samples for entry in group[1:])


def value(entry: Entry, unit: str) -> float:
    """A measurement in the unit of its row."""
    return 1000 * entry.per_unit if unit == "ms" else 1 / entry.per_unit


def number(entry: Entry, unit: str) -> str:
    """A measurement with three or more digits."""
    measured = value(entry, unit)
    return f"{measured:,.0f}" if measured >= 100 else f"{measured:.3g}"


def gigabytes(entry: Entry) -> float:
    """The GPU memory that was reserved at most."""
    return max(sample.memory for sample in entry.samples) / 1e9


def same_texts(ours: Entry, peer: Entry) -> float | None:
    """The fraction of texts that two contestants have in common; None if there is none to compare."""
    if not ours.texts or len(ours.texts) != len(peer.texts):
        return None
    return statistics.mean(one == other for one, other in zip(ours.texts, peer.texts, strict=True))


# --- table ------------------------------------------------------------------------------------------------------------


def circumstances(quick: bool = False, threads: int = 0) -> dict[str, Any]:
    """The machine and versions that the numbers depend on; with 0 threads, torch chooses their number."""
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else ""
    return {
        "date": date.today().isoformat(),
        "clearhead": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "gpu": gpu,
        "cpu": processor(),
        "threads": threads or torch.get_num_threads(),
        "sizes": "tiny, so that the numbers mean nothing" if quick else "",
    }


def processor() -> str:
    """The name of the CPU, as far as the system says."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def show(results: Sequence[Measured], console: Console, facts: dict[str, Any]) -> None:
    """Print a heading for each row, with its unit or why it was skipped, and a line for each case."""
    for measured in results:
        row = measured.row
        about = f"skipped: {measured.skipped}" if measured.skipped else row.unit
        console.print(Text.assemble((row.title, "cyan"), f": {about}"))
        console.print(table(measured))
        for reason in measured.reasons():
            console.print(Text(f" {reason}", style="dim"))
    known = [f"{name} {fact}" for name, fact in facts.items() if fact]
    ratios = any(has_peers(group) for measured in results for group in measured.cases())
    console.print(", ".join(known) + ("; above 1, clearhead is faster" if ratios else ""), style="dim")


def table(measured: Measured) -> Table:
    """The cases of a row: how many times as fast as each peer, then the numbers."""
    found = Table(box=None, show_header=False)
    found.add_column(min_width=CASE_WIDTH)
    found.add_column(min_width=CASE_WIDTH, no_wrap=True)
    found.add_column(justify="right", min_width=8)
    found.add_column(style="dim")
    unit = measured.row.unit
    for ours, *others in measured.cases():
        peers = [peer for peer in others if peer.samples]
        ratios = [
            Text.assemble((f"{speed_ratio(ours, peer):.2f}", "bold"), f" × {peer.who} ({number(peer, unit)})")
            for peer in peers
        ]
        memory = f"{gigabytes(ours):.1f} GB" if gigabytes(ours) else ""
        found.add_row(ours.case, Text("\n").join(ratios), Text(number(ours, unit), style="bold"), memory)
    return found


# --- JSON -------------------------------------------------------------------------------------------------------------


def as_json(results: Sequence[Measured], facts: dict[str, Any]) -> str:
    """Everything that was measured."""
    rows = []
    for measured in results:
        cases = [[entry_facts(entry, group[0], measured.row.unit) for entry in group] for group in measured.cases()]
        row = {"name": measured.row.name, "title": measured.row.title, "unit": measured.row.unit}
        rows.append({**row, "skipped": measured.skipped, "missing": measured.reasons(), "cases": cases})
    return json.dumps({"circumstances": facts, "rows": rows}, indent=1, ensure_ascii=False) + "\n"


def entry_facts(entry: Entry, ours: Entry, unit: str) -> dict[str, Any]:
    """One contestant in one case; `ours_is_faster` is how many times as fast as this contestant ours is."""
    facts: dict[str, Any] = {"who": entry.who, "case": entry.case}
    if not entry.samples:
        return {**facts, "reason": entry.reason}
    return {
        **facts,
        "ours_is_faster": round(speed_ratio(ours, entry), 4),
        "value": float(f"{value(entry, unit):.5g}"),
        "rounds": [round(sample.seconds, 6) for sample in entry.samples],
        "units": entry.samples[0].units,
        "first_call": round(entry.first, 3),
        "gpu_memory_gb": round(gigabytes(entry), 2),
        "programs_compiled_in_rounds": sum(sample.programs for sample in entry.samples),
        "same_texts": same_texts(ours, entry),
    }


# --- picture ----------------------------------------------------------------------------------------------------------


def check_plot(path: Path) -> None:
    """Refuse a picture that cannot be made, before anything is measured."""
    require_output(path, "--plot", SUFFIXES)
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise UserError("--plot needs matplotlib: pip install 'clearhead[watch]'") from error


def write_plot(results: Sequence[Measured], path: Path, facts: dict[str, Any]) -> None:
    """Write the picture."""
    figure = draw(results, facts)
    write_file(path, lambda temporary: figure.savefig(temporary, dpi=120))


def draw(results: Sequence[Measured], facts: dict[str, Any]) -> Figure:
    """A bar for each peer: how many times as fast ours is, on a logarithmic axis."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter, ScalarFormatter

    cases = [(measured.row, group) for measured in results for group in measured.cases()]
    peers = list(dict.fromkeys(entry.who for _, group in cases for entry in group[1:] if entry.samples))
    colours = {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(peers)}
    figure = Figure(figsize=(11, 1.6 + 0.42 * max(1, len(cases))), layout="constrained")
    axes = figure.subplots()
    for line, (_, (ours, *others)) in enumerate(cases):
        measured = [entry for entry in others if entry.samples]
        for place, entry in enumerate(measured):
            ratio = speed_ratio(ours, entry)
            middle = line + 0.26 * (place - (len(measured) - 1) / 2)
            axes.barh(middle, ratio - 1, 0.24, left=1, color=colours[entry.who])
            axes.annotate(f" {ratio:.2f}", (max(ratio, 1), middle), va="center", fontsize=7)
    labels = [f"{row.title}, {ours.case}: {number(ours, row.unit)} {row.unit}" for row, (ours, *_) in cases]
    axes.set_yticks(range(len(cases)), labels, fontsize=8)
    axes.invert_yaxis()
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xticks([0.1, 0.2, 0.5, 1, 2, 5, 10])
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("times as fast as the peer" if peers else "times as fast as the peer; no peer was measured")
    sizes = f", sizes {facts['sizes']}" if facts["sizes"] else ""
    axes.set_title(f"{facts['gpu'] or facts['cpu']}, torch {facts['torch']}, {facts['date']}{sizes}", fontsize=10)
    for name, colour in colours.items():
        axes.barh([0], [0], left=1, color=colour, label=name)
    if peers:
        axes.legend(fontsize=8)
    return figure
