"""The C extensions, which pyproject.toml cannot express. Without a compiler the package works, more slowly."""

from glob import glob

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "stoker._src.formats._native",
            sources=sorted(glob("stoker/_src/formats/native/*.c")),
            depends=sorted(glob("stoker/_src/formats/native/*.h")),
            extra_compile_args=["-O3", "-std=c11"],
            optional=True,
        ),
        Extension(
            "stoker._src.formats.images._native",
            sources=["stoker/_src/formats/images/native.c"],
            extra_compile_args=["-O3", "-std=c11"],
            optional=True,
        ),
    ]
)
