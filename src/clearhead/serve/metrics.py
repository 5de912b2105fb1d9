"""Metrics in the text format of Prometheus."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable

from clearhead.serve.engine import Engine
from clearhead.serve.service import Service

BUCKETS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)  # seconds


class Metrics:
    """Counts of requests by endpoint and status, and their latencies."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.buckets: defaultdict[str, Counter[float]] = defaultdict(Counter)
        self.seconds: Counter[str] = Counter()

    def observe(self, path: str, status: int, seconds: float) -> None:
        """Count a request."""
        self.requests[path, status] += 1
        self.seconds[path] += seconds  # type: ignore[assignment]  # a Counter of floats
        for bound in BUCKETS:
            self.buckets[path][bound] += seconds <= bound

    def text(self, service: Service) -> str:
        """All metrics as Prometheus reads them."""
        lines = [
            "# HELP clearhead_requests_total Requests that were answered.",
            "# TYPE clearhead_requests_total counter",
        ]
        for (path, status), count in sorted(self.requests.items()):
            lines.append(f'clearhead_requests_total{{path="{path}",status="{status}"}} {count}')
        lines += ["# HELP clearhead_request_seconds Time to answer.", "# TYPE clearhead_request_seconds histogram"]
        for path, buckets in sorted(self.buckets.items()):
            total = sum(count for (each, _), count in self.requests.items() if each == path)
            for bound in BUCKETS:
                lines.append(f'clearhead_request_seconds_bucket{{path="{path}",le="{bound}"}} {buckets[bound]}')
            lines.append(f'clearhead_request_seconds_bucket{{path="{path}",le="+Inf"}} {total}')
            lines.append(f'clearhead_request_seconds_sum{{path="{path}"}} {self.seconds[path]:.6f}')
            lines.append(f'clearhead_request_seconds_count{{path="{path}"}} {total}')
        return "\n".join([*lines, *engine_lines(service)]) + "\n"


def engine_lines(service: Service) -> list[str]:
    """The metrics of each engine."""
    measured: list[tuple[str, str, str, Callable[[Engine], int]]] = [
        ("waiting", "gauge", "Requests in the queue.", lambda engine: len(engine.waiting)),
        ("running", "gauge", "Requests that are being computed.", lambda engine: engine.active),
        ("tokens_read_total", "counter", "Tokens of prompts.", lambda engine: engine.tokens_read),
        ("tokens_written_total", "counter", "Tokens that were generated.", lambda engine: engine.tokens_written),
    ]
    lines = []
    for name, kind, text, value in measured:
        lines += [f"# HELP clearhead_{name} {text}", f"# TYPE clearhead_{name} {kind}"]
        lines += [f"clearhead_{name}{{model={quoted(model)}}} {value(e)}" for model, e in service.engines.items()]
    return lines


def quoted(label: str) -> str:
    """A label's value, as Prometheus reads it."""
    escaped = label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'"{escaped}"'
