"""Public names of tf.config.experimental."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.runtime.device_config import get_device_details as get_device_details
from stoker._src.runtime.device_config import get_logical_device_configuration as get_virtual_device_configuration
from stoker._src.runtime.device_config import get_memory_growth as get_memory_growth
from stoker._src.runtime.device_config import get_memory_info as get_memory_info
from stoker._src.runtime.device_config import get_memory_usage as get_memory_usage
from stoker._src.runtime.device_config import get_visible_devices as get_visible_devices
from stoker._src.runtime.device_config import list_logical_devices as list_logical_devices
from stoker._src.runtime.device_config import list_physical_devices as list_physical_devices
from stoker._src.runtime.device_config import LogicalDeviceConfiguration as VirtualDeviceConfiguration
from stoker._src.runtime.device_config import reset_memory_stats as reset_memory_stats
from stoker._src.runtime.device_config import set_logical_device_configuration as set_virtual_device_configuration
from stoker._src.runtime.device_config import set_memory_growth as set_memory_growth
from stoker._src.runtime.device_config import set_visible_devices as set_visible_devices
from stoker._src.runtime.devices import enable_tensor_float_32_execution as enable_tensor_float_32_execution
from stoker._src.runtime.devices import tensor_float_32_execution_enabled as tensor_float_32_execution_enabled
