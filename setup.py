"""Optional compiled modules: every `native/*.c` under stoker/_src is one, named after its file.

Each has a Python twin that gives identical results, so a machine without a compiler loses speed and nothing else.
"""

from pathlib import Path

from setuptools import Extension, setup

ROOT = Path(__file__).parent

# Contracting a*b+c into one rounding would change bits that the Python twins, and TensorFlow, do not change.
# Errno of sqrt and friends is never read, and checking it would keep loops from being vectorised.
COMPILE_ARGS = ["-O3", "-std=c11", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"]


def native_extensions() -> list[Extension]:
    """One optional extension for each C file in a `native` folder; headers beside it are its dependencies."""
    extensions = []
    for source in sorted((ROOT / "stoker" / "_src").glob("**/native/*.c")):
        relative = source.relative_to(ROOT)
        extensions.append(
            Extension(
                ".".join(relative.with_suffix("").parts),
                [str(relative)],
                depends=[str(header.relative_to(ROOT)) for header in sorted(source.parent.glob("*.h"))],
                extra_compile_args=COMPILE_ARGS,
                optional=True,
            )
        )
    return extensions


setup(ext_modules=native_extensions())
