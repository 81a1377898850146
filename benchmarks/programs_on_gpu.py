"""The sets of programs (`programs.py`, `more_programs.py`, ...) on a GPU: stoker beside its CPU, PyTorch (eager and compiled) and JAX of the same step.

    python benchmarks/programs_on_gpu.py [--seconds S] [--sides SIDE,...] [--json FILE] [PROGRAM ...]

Every side is fed NumPy arrays and hands the loss back as a number at each step. PyTorch runs eagerly with its own optimizers, and with the loss and its
gradient compiled by `torch.compile` where that can be (it has no second derivatives, and leaves cuDNN's LSTM as it is); JAX is one jitted step. TF32 is
on for all. Columns are empty where there is no counterpart. Prints steps per second, and for each program what
`session.explain` says about recording.
"""

import argparse
import concurrent.futures
import json
import os
import sys

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
sys.path.insert(0, os.path.dirname(__file__))

import counterpart_jax
import counterpart_torch
import torch
from sets import PROGRAMS, measure_for

import stoker.compat.v1 as tf
from stoker._src.runtime import devices

SIDES = {
    "cpu": "CPU",
    "gpu": "stoker",
    "unfused": "not fused",
    "unrecorded": "not recorded",
    "torch": "PyTorch",
    "compiled": "torch.compile",
    "jax": "JAX",
}
COMPILED = ("vae", "gan", "dropout_mlp", "small_resnet", "transformer_block", "matrix_factorization", "triplet")


def ours(name, *, gpu=True, recorded=True, fused=True):
    """Returns the rate of a program, and the remarks about its plans."""
    remarks = []

    class Session(tf.Session):
        def close(self):
            for plan in self._plans.values():
                remarks.extend(line[2:] for line in plan.explain().splitlines() if line.startswith("#"))
            super().close()

    os.environ["STOKER_CUDA_GRAPHS"] = "1" if recorded else "0"
    os.environ["STOKER_FUSED_KERNELS"] = "1" if fused else "0"
    usable, session = devices.usable_gpus, tf.Session
    devices.usable_gpus = usable if gpu else lambda: 0
    tf.Session = Session
    try:
        return PROGRAMS[name](tf)[0], remarks
    finally:
        devices.usable_gpus, tf.Session = usable, session


def jax_steps(names):
    """Returns the compiled JAX steps of programs. Compilation takes seconds for each, so they share the cores."""
    import jax

    jax.config.update("jax_default_matmul_precision", "tensorfloat32")

    def compiled(name):
        step = counterpart_jax.jax_step(jax, name)
        if step is not None:
            step()
        return step

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(names, pool.map(compiled, names)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help="all of: " + ", ".join(PROGRAMS))
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each measurement")
    parser.add_argument("--sides", default=",".join(SIDES), help="what to measure, of: " + ", ".join(SIDES))
    parser.add_argument("--json", help="file for the rates and remarks")
    args = parser.parse_args()
    sides, names = args.sides.split(","), args.programs or list(PROGRAMS)
    if not torch.cuda.is_available() and sides != ["cpu"]:
        parser.error("there is no GPU that torch can use")
    timed = measure_for(args.seconds)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    device = torch.cuda.get_device_name(0) if torch.cuda.is_available() else "no GPU"
    print(f"{device}, {os.cpu_count()} cores, torch {torch.__version__}; steps per second\n")
    print(f"| program | {' | '.join(SIDES[side] for side in sides)} |\n|---|{'---:|' * len(sides)}", flush=True)
    jitted = jax_steps(names) if "jax" in sides else {}
    found, notes = {}, []
    for name in names:
        row = found[name] = {}
        for side in sides:
            if side in ("cpu", "gpu", "unfused", "unrecorded"):
                row[side], remarks = ours(
                    name, gpu=side != "cpu", recorded=side != "unrecorded", fused=side in ("cpu", "gpu")
                )
                if side == "gpu":
                    row["remarks"] = list(dict.fromkeys(remarks))
                    notes += [f"{name}: {remark}" for remark in row["remarks"]]
            elif side == "jax":
                step = jitted[name]
                row[side] = None if step is None else timed(step, 1)
            else:
                compiles = side == "compiled"
                step = (
                    None if compiles and name not in COMPILED else counterpart_torch.torch_step(name, compiled=compiles)
                )
                row[side] = None if step is None else timed(step, 1)
        cells = ["" if row[side] is None else f"{row[side]:,.0f}" for side in sides]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
        if args.json:
            with open(args.json, "w") as file:
                json.dump(found, file)
    print("\n" + "\n".join(notes))


if __name__ == "__main__":
    main()
