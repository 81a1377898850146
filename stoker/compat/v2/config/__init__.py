"""Public names of tf.config."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.compat.v2.config import experimental as experimental
from stoker.compat.v2.config import threading as threading
from stoker._src.runtime.device_config import get_logical_device_configuration as get_logical_device_configuration
from stoker._src.runtime.device_config import get_visible_devices as get_visible_devices
from stoker._src.runtime.device_config import list_logical_devices as list_logical_devices
from stoker._src.runtime.device_config import list_physical_devices as list_physical_devices
from stoker._src.runtime.device_config import LogicalDevice as LogicalDevice
from stoker._src.runtime.device_config import LogicalDeviceConfiguration as LogicalDeviceConfiguration
from stoker._src.runtime.device_config import PhysicalDevice as PhysicalDevice
from stoker._src.runtime.device_config import set_logical_device_configuration as set_logical_device_configuration
from stoker._src.runtime.device_config import set_visible_devices as set_visible_devices
from stoker._src.runtime.functions.def_function import functions_run_eagerly as functions_run_eagerly
from stoker._src.runtime.functions.def_function import run_functions_eagerly as run_functions_eagerly
