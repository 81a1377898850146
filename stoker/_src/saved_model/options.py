"""`tf.saved_model.SaveOptions` and `LoadOptions`."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Any

from stoker._src.base.export import export


@export("saved_model.experimental.VariablePolicy")
class VariablePolicy(enum.Enum):
    """What a SavedModel records about variables on several devices."""

    NONE = None
    SAVE_VARIABLE_DEVICES = "save_variable_devices"
    EXPAND_DISTRIBUTED_VARIABLES = "expand_distributed_variables"

    def _save_variable_devices(self) -> bool:
        return self is not VariablePolicy.NONE

    def _expand_distributed_variables(self) -> bool:
        return self is VariablePolicy.EXPAND_DISTRIBUTED_VARIABLES

    @staticmethod
    def from_obj(obj: Any) -> VariablePolicy:
        """Returns the policy that a policy or its name stands for; NONE for None.

        Raises:
            ValueError: there is no such policy.
        """
        if obj is None or isinstance(obj, VariablePolicy):
            return obj or VariablePolicy.NONE
        wanted = str(obj).lower()
        for policy in VariablePolicy:
            if policy.value == wanted:
                return policy
        raise ValueError(f"Received invalid VariablePolicy value: {obj}.")


@export("saved_model.SaveOptions")
class SaveOptions:
    """How `tf.saved_model.save` writes a SavedModel.

    Args:
        namespace_whitelist: namespaces of ops that may be saved; accepted, since all ops that exist here have none.
        save_debug_info: must be False: the lines that created ops are not saved.
        function_aliases: names for functions. The SavedModel records which traces each name stands for.
        experimental_debug_stripper: whether to leave out Assert, CheckNumerics and Print ops.
        experimental_io_device: the device whose file system holds the SavedModel.
        experimental_variable_policy: what to record about the devices of variables.
        experimental_custom_gradients: whether to save the gradient functions of `tf.custom_gradient`.
        experimental_image_format: must be False: a SavedModel is one message.
        experimental_skip_saver: whether to leave out the ops that save and restore.
        experimental_sharding_callback: must be None: the variables of one process are one file.
        extra_tags: tags to add to "serve".

    Raises:
        NotImplementedError: an option that is not supported has another value than the one above.
    """

    def __init__(
        self,
        namespace_whitelist: Sequence[str] | None = None,
        save_debug_info: bool = False,
        function_aliases: Mapping[str, Any] | None = None,
        experimental_debug_stripper: bool = False,
        experimental_io_device: str | None = None,
        experimental_variable_policy: Any = None,
        experimental_custom_gradients: bool = True,
        experimental_image_format: bool = False,
        experimental_skip_saver: bool = False,
        experimental_sharding_callback: Any = None,
        extra_tags: Sequence[str] | None = None,
    ) -> None:
        if isinstance(namespace_whitelist, str) or not all(isinstance(n, str) for n in namespace_whitelist or ()):
            raise TypeError(f"Namespace whitelist must be a list of strings, found {namespace_whitelist!r}.")
        for name, given in (
            ("save_debug_info", save_debug_info),
            ("experimental_debug_stripper", experimental_debug_stripper),
            ("experimental_image_format", experimental_image_format),
            ("experimental_sharding_callback", experimental_sharding_callback),
        ):
            if given:
                raise NotImplementedError(f"The option {name} of SaveOptions is not supported.")
        self.namespace_whitelist = list(namespace_whitelist or ())
        self.save_debug_info = save_debug_info
        self.function_aliases = dict(function_aliases or {})
        self.experimental_debug_stripper = experimental_debug_stripper
        self.experimental_io_device = experimental_io_device
        self.experimental_variable_policy = VariablePolicy.from_obj(experimental_variable_policy)
        self.experimental_custom_gradients = experimental_custom_gradients
        self.experimental_image_format = experimental_image_format
        self.experimental_skip_saver = experimental_skip_saver
        self.experimental_sharding_callback = experimental_sharding_callback
        self.extra_tags = extra_tags


@export(v2="saved_model.LoadOptions")
class LoadOptions:
    """How `tf.saved_model.load` reads a SavedModel.

    Args:
        allow_partial_checkpoint: whether variables that the checkpoint lacks may stay uninitialized.
        experimental_io_device: the device whose file system holds the SavedModel.
        experimental_skip_checkpoint: whether to leave all variables uninitialized.
        experimental_variable_policy: accepted. Variables are placed where this process places them.
        experimental_load_function_aliases: whether to give the root an attribute `function_aliases`, from names to traces.
    """

    def __init__(
        self,
        allow_partial_checkpoint: bool = False,
        experimental_io_device: str | None = None,
        experimental_skip_checkpoint: bool = False,
        experimental_variable_policy: Any = None,
        experimental_load_function_aliases: bool = False,
    ) -> None:
        self.allow_partial_checkpoint = allow_partial_checkpoint
        self.experimental_io_device = experimental_io_device
        self.experimental_skip_checkpoint = experimental_skip_checkpoint
        self.experimental_variable_policy = VariablePolicy.from_obj(experimental_variable_policy)
        self.experimental_load_function_aliases = experimental_load_function_aliases


DEFAULT_SAVE = SaveOptions()
DEFAULT_LOAD = LoadOptions()
