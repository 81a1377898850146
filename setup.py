"""The C extensions, which pyproject.toml cannot express.

Each has a twin in Python or torch that gives the same results, so a machine without a compiler loses speed and nothing else.
"""

from glob import glob

from setuptools import Extension, setup

# Contracting a*b+c into one rounding would change bits that the Python twins, and TensorFlow, do not change.
# Errno of sqrt and friends is never read, and checking it would keep loops from being vectorised.
COMPILE_ARGS = ["-O3", "-std=c11", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"]


def extension(module: str, sources: list[str], headers: str, compile_args: list[str] = COMPILE_ARGS) -> Extension:
    return Extension(
        f"stoker._src.{module}",
        [f"stoker/_src/{source}" for source in sources],
        depends=sorted(glob(f"stoker/_src/{headers}") + glob("stoker/_src/base/native/*.h")),
        extra_compile_args=compile_args,
        extra_link_args=[argument for argument in compile_args if argument == "-fopenmp"],
        optional=True,
    )


RECORDS = ["bundles", "crc32c", "csv", "examples", "features", "files", "module", "records", "sequences"]

setup(
    ext_modules=[
        extension(
            "formats._native",
            [f"formats/native/{name}.c" for name in RECORDS],
            "formats/native/*.h",
            [*COMPILE_ARGS, "-fopenmp"],
        ),
        extension("formats.native.hashing", ["formats/native/hashing.c"], "formats/native/*.h"),
        extension(
            "formats.images._native",
            [f"formats/images/{name}.c" for name in ("jpegs", "native", "pngs")],
            "formats/images/*.h",
            [*COMPILE_ARGS, "-fopenmp"],
        ),
        extension("ops.native.random_bits", ["ops/native/random_bits.c"], "ops/native/*.h"),
        extension("ops.native.distances", ["ops/native/distances.c"], "ops/native/*.h"),
        extension("ops.native.histograms", ["ops/native/histograms.c"], "ops/native/*.h"),
        extension("ops.native.largest", ["ops/native/largest.c"], "ops/native/*.h"),
        extension("ops.native.sdca", ["ops/native/sdca.c"], "ops/native/*.h"),
        extension("ops.native.strings", ["ops/native/strings.c"], "formats/native/*.h"),
        *(
            extension(f"ops.native.{name}", [f"ops/native/{name}.c"], "ops/native/*.h", [*COMPILE_ARGS, "-fopenmp"])
            for name in (
                "batch_norm",
                "columns",
                "convolutions",
                "cropping",
                "cross_entropy",
                "images",
                "modulus",
                "pooling",
                "products",
                "rows",
                "segments",
                "selection",
                "shared",
                "updates",
                "winograd",
            )
        ),
        *(
            extension(
                f"ops.native.{name}",
                [f"ops/native/{name}.c"],
                "ops/native/*.h",
                [*COMPILE_ARGS, "-ffp-contract=fast", "-fopenmp"],
            )
            for name in ("depthwise", "patches")
        ),
        extension(
            "runtime.native.program",
            [f"runtime/native/{name}.c" for name in ("program", "lines32", "lines64")],
            "runtime/native/*.h",
            [*COMPILE_ARGS, "-ffp-contract=fast", "-fopenmp"],
        ),
        extension(
            "runtime.native.small_ops",
            ["runtime/native/small_ops.c", "runtime/native/small_floats.c"],
            "[or]*/native/*.h",
            [*COMPILE_ARGS, "-fopenmp"],
        ),
        extension(
            "runtime.native.threads", ["runtime/native/threads.c"], "runtime/native/*.h", [*COMPILE_ARGS, "-fopenmp"]
        ),
    ]
)
