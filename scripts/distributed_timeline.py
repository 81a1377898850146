"""Draws the timeline of one step on a cluster: `python scripts/distributed_timeline.py [--svg docs/timeline.svg] [--json trace.json]`.

A parameter server is a process, and the worker is this one. The program is an MNIST network of 784-100-10 units with Adagrad, as in TensorFlow's
documents. The step is traced with `RunOptions(trace_level=FULL_TRACE)`; the JSON file is for chrome://tracing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

import stoker.compat.v1 as tf
from stoker._src.runtime.trace import Timeline

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.distributed.ports import free_ports  # noqa: E402

WIDTH, LABEL, ROW, TOP = 860, 150, 26, 34
COLORS = {"wait": "#c9cdd4", "MatMul": "#3b6fb5", "Apply": "#b5493b", "other": "#2f7d5b"}
SERVE = """
import sys, stoker.compat.v1 as tf
tf.train.Server(%r, job_name="ps", task_index=0)
print("serving", flush=True)
sys.stdin.read()
"""


def traced_step(cluster: dict[str, list[str]], steps: int) -> Any:
    """Returns the step stats of the fastest of several steps."""
    server = tf.train.Server(cluster, job_name="worker", task_index=0)
    with tf.device(tf.train.replica_device_setter(cluster=tf.train.ClusterSpec(cluster))):
        x, y = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.float32, [None, 10])
        hidden = tf.layers.dense(x, 100, tf.nn.relu, name="hidden")
        logits = tf.layers.dense(hidden, 10, name="logits")
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=y, logits=logits))
        train = tf.train.AdagradOptimizer(0.01).minimize(loss, global_step=tf.train.get_or_create_global_step())
    random = np.random.RandomState(0)
    feed = {x: random.rand(100, 784), y: np.eye(10)[random.randint(0, 10, 100)]}
    best, options = None, tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    with tf.Session(server.target) as session:
        session.run(tf.global_variables_initializer())
        for _ in range(steps):
            metadata = tf.RunMetadata()
            session.run([train, loss], feed, options, metadata)
            if best is None or _extent(metadata.step_stats)[1] < _extent(best)[1]:
                best = metadata.step_stats
    return best


def _extent(stats: Any) -> tuple[int, int]:
    """Returns the start of a step and its length, in microseconds."""
    nodes = [node for device in stats.dev_stats for node in device.node_stats]
    start = min(node.all_start_micros for node in nodes)
    return start, max(node.all_start_micros + node.all_end_rel_micros for node in nodes) - start


def _kind(node: Any) -> str:
    if node.node_name == "RecvTensor":
        return "wait"
    op = node.timeline_label.partition(" = ")[2].partition("(")[0]
    return "MatMul" if op == "MatMul" else "Apply" if op.startswith("Apply") else "other"


def draw(stats: Any) -> str:
    start, length = _extent(stats)
    scale = (WIDTH - LABEL - 20) / length

    def at(micros: float) -> float:
        return LABEL + micros * scale

    parts: list[str] = []
    y = TOP
    for device in sorted(stats.dev_stats, key=lambda device: device.device, reverse=True):
        task = device.device.removeprefix("/").replace("/replica:0", "").partition("/device")[0]
        for title, is_wait in ((f"{task}: ops", False), ("waits for values", True)):
            nodes = [node for node in device.node_stats if (_kind(node) == "wait") == is_wait]
            parts.append(f'<text x="{LABEL - 8}" y="{y + 16}" text-anchor="end">{escape(title)}</text>')
            # Of the values that arrive together, the last one to arrive shows how long the task waited.
            if is_wait:
                nodes = sorted(nodes, key=lambda node: -node.all_end_rel_micros)
            for node in nodes:
                left, width = at(node.all_start_micros - start), max(0.7, node.all_end_rel_micros * scale)
                text = f"{node.timeline_label}: {node.all_end_rel_micros} us"
                parts.append(
                    f'<rect x="{left:.1f}" y="{y + 3}" width="{width:.1f}" height="{ROW - 8}" fill="{COLORS[_kind(node)]}" '
                    f'stroke="white" stroke-width="0.3"><title>{escape(text)}</title></rect>'
                )
            y += ROW
        y += 8
    step = next(each for each in (50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 10**6) if length / each <= 12)
    for micros in range(0, length + 1, step):
        x = at(micros)
        parts.insert(
            0, f'<line x1="{x:.1f}" y1="{TOP - 4}" x2="{x:.1f}" y2="{y}" stroke="#dddddd" stroke-width="0.6"/>'
        )
        parts.append(f'<text x="{x:.1f}" y="{TOP - 10}" text-anchor="middle" fill="#666666">{micros} us</text>')
    x = LABEL
    for name, color in (
        ("matrix product", "MatMul"),
        ("update of a variable", "Apply"),
        ("other op", "other"),
        ("wait", "wait"),
    ):
        parts.append(f'<rect x="{x}" y="{y + 6}" width="12" height="12" fill="{COLORS[color]}"/>')
        parts.append(f'<text x="{x + 17}" y="{y + 16}">{name}</text>')
        x += 150
    height = y + 28
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="11" fill="#30343b"><rect width="100%" height="100%" fill="white"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--svg", default=str(ROOT / "docs" / "timeline.svg"))
    parser.add_argument("--json", help="write the Chrome trace to this file")
    parser.add_argument("--steps", type=int, default=30)
    args = parser.parse_args()
    ps, worker = (f"127.0.0.1:{port}" for port in free_ports(2))
    cluster = {"ps": [ps], "worker": [worker]}
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE % cluster], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "serving\n"
        stats = traced_step(cluster, args.steps)
    finally:
        process.kill()
        process.wait()
    Path(args.svg).write_text(draw(stats))
    if args.json:
        Path(args.json).write_text(Timeline(stats).generate_chrome_trace_format())
        json.loads(Path(args.json).read_text())
    nodes = sum(len(device.node_stats) for device in stats.dev_stats)
    print(f"{args.svg}: a step of {_extent(stats)[1]} us with {nodes} nodes on {len(stats.dev_stats)} tasks")


if __name__ == "__main__":
    main()
