"""`tf.data.Options`."""

from __future__ import annotations

from stoker._src.base.export import export


@export("data.Options")
class Options:
    """Settings of a dataset: any attribute may be set. The order of elements is always deterministic."""

    def __init__(self) -> None:
        self.experimental_deterministic: bool | None = None
        self.experimental_distribute = _Settings()
        self.experimental_optimization = _Settings()
        self.experimental_threading = _Settings()
        self.threading = _Settings()
        self.autotune = _Settings()

    def merge(self, options: Options) -> Options:
        """Returns these options, with those that `options` sets on top."""
        merged = Options()
        for given in (self, options):
            for name, value in vars(given).items():
                if value is not None:
                    setattr(merged, name, value)
        return merged


class _Settings:
    """A group of options."""
