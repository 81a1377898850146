"""Trains a small model, opens TensorBoard on what it wrote in a headless Chromium, and looks for each kind of summary there.

python scripts/tensorboard_check.py [--screenshots DIRECTORY]

`make tensorboard-check` runs it. It needs Chromium, which that target installs where apt can; without it nothing is checked.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import stoker.compat.v1 as tf

SECONDS = 60
# Tab, and JavaScript that is true once the tab shows what it should. `text` is all text of the page, `all(selector)` all elements,
# both through shadow trees and frames.
TABS = {
    "scalars": "text.includes('training/loss') && all('canvas, svg').length > 0",
    "images": "all('img').some(i => i.naturalWidth > 0 && i.src.includes('individualImage'))",
    "graphs": "all('g.node').length > 5",
    "histograms": "text.includes('weights') && all('svg path').length > 5",
    "text": "text.includes('a note from the training program')",
}
_LOOK = """
(() => {
  const roots = [document];
  for (let i = 0; i < roots.length; i++) {
    for (const e of roots[i].querySelectorAll('*')) {
      if (e.shadowRoot) roots.push(e.shadowRoot);
      if (e.tagName === 'IFRAME' && e.contentDocument) roots.push(e.contentDocument);
    }
  }
  const all = selector => roots.flatMap(root => [...root.querySelectorAll(selector)]);
  const text = roots.map(root => (root.body || root).textContent).join('\\n');
  return Boolean(CONDITION);
})()
"""


def train(directory: str) -> None:
    """Writes scalars, a histogram, an image, a text and the graph."""
    rng = np.random.RandomState(0)
    x = tf.placeholder(tf.float32, [None, 5], name="x")
    weights = tf.get_variable("weights", [5, 1])
    with tf.name_scope("training"):
        loss = tf.reduce_mean(tf.square(tf.matmul(x, weights) - tf.reduce_sum(x, 1, keepdims=True)))
        tf.summary.scalar("loss", loss)
    tf.summary.histogram("weights", weights)
    tf.summary.image("picture", tf.constant(rng.rand(1, 16, 16, 3).astype(np.float32)))
    tf.summary.text("note", tf.constant("a note from the training program"))
    step = tf.train.get_or_create_global_step()
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    hooks = [tf.train.StopAtStepHook(last_step=50)]
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=directory, hooks=hooks, save_summaries_steps=5, log_step_count_steps=10
    ) as session:
        while not session.should_stop():
            session.run(train_op, {x: rng.randn(16, 5)})
    tf.summary.FileWriterCache.clear()


@contextmanager
def tensorboard(directory: str) -> Iterator[str]:
    """The address of a TensorBoard on a free port of this machine."""
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", directory, "--port", "0", "--load_fast=false"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if found := re.search(r"http://\S+", line):
                yield found[0]
                return
        raise SystemExit("TensorBoard did not start")
    finally:
        process.terminate()
        process.wait()


class Chromium:
    """A headless Chromium, spoken to by pipes: messages of JSON that end with a zero byte."""

    def __init__(self, program: str, profile: str) -> None:
        to_child, self._to = os.pipe()
        self._from, from_child = os.pipe()

        def connect() -> None:
            # The browser reads from descriptor 3 and writes to 4. High numbers first, as one may be the other.
            read, write = os.dup(to_child), os.dup(from_child)
            os.dup2(read, 3)
            os.dup2(write, 4)

        command = [
            program, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--window-size=1400,1000",
            f"--user-data-dir={profile}", "--no-first-run", "about:blank",
        ]  # fmt: skip
        self.process = subprocess.Popen(
            command, preexec_fn=connect, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(to_child)
        os.close(from_child)
        self._number, self._rest = 0, b""
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        self._session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]

    def call(self, method: str, params: dict[str, Any], page: bool = False) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if page:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self._rest:
                data = os.read(self._from, 1 << 16)
                if not data:
                    raise SystemExit("Chromium has ended")
                self._rest += data
            text, _, self._rest = self._rest.partition(b"\0")
            answer = json.loads(text)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise SystemExit(f"{method}: {answer['error']}")
                return answer["result"]

    def open(self, url: str) -> None:
        self.call("Page.navigate", {"url": "about:blank"}, page=True)
        self.call("Page.navigate", {"url": url}, page=True)

    def holds(self, condition: str) -> bool:
        expression = _LOOK.replace("CONDITION", condition)
        result = self.call("Runtime.evaluate", {"expression": expression, "returnByValue": True}, page=True)
        return result["result"].get("value") is True

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", {"format": "png"}, page=True)["data"]))

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--screenshots", type=Path, help="where to put a picture of each tab")
    args = parser.parse_args()
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        print("no Chromium found: TensorBoard is not checked")
        return
    missing = []
    with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryDirectory() as profile:
        train(directory)
        with tensorboard(directory) as address:
            browser = Chromium(program, profile)
            try:
                for tab, condition in TABS.items():
                    browser.open(f"{address}#{tab}")
                    end = time.monotonic() + SECONDS
                    while not (shown := browser.holds(condition)) and time.monotonic() < end:
                        time.sleep(0.5)
                    print(f"{tab:12} {'shown' if shown else 'MISSING'}", flush=True)
                    if not shown:
                        missing.append(tab)
                    if args.screenshots:
                        args.screenshots.mkdir(parents=True, exist_ok=True)
                        time.sleep(1)  # what is drawn comes to rest
                        browser.screenshot(args.screenshots / f"{tab}.png")
            finally:
                browser.close()
    sys.exit(bool(missing))


if __name__ == "__main__":
    main()
