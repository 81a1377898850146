"""tf.config: devices, memory and threads. What concerns GPUs is run with one in place of those of the machine."""

import pytest
import torch

import stoker as tf
from stoker._src.runtime import device_config, devices

CPU = tf.config.PhysicalDevice("/physical_device:CPU:0", "CPU")
GPU = tf.config.PhysicalDevice("/physical_device:GPU:0", "GPU")


@pytest.fixture
def two_gpus(monkeypatch):
    """A machine that says it has two GPUs."""
    monkeypatch.setattr(devices, "installed_gpus", lambda: 2)
    monkeypatch.setattr(devices, "visible_gpus", None)
    monkeypatch.setattr(device_config, "_growth", {})
    monkeypatch.setattr(device_config, "_limits", {})


@pytest.fixture
def no_gpu(monkeypatch):
    """A machine without GPUs."""
    monkeypatch.setattr(devices, "installed_gpus", lambda: 0)


def test_without_gpu(no_gpu):
    """There is the CPU, which is always used."""
    assert tf.config.list_physical_devices() == [CPU]
    assert tf.config.list_physical_devices("GPU") == tf.config.experimental.list_physical_devices("GPU") == []
    assert tf.config.list_logical_devices() == [tf.config.LogicalDevice("/device:CPU:0", "CPU")]
    tf.config.set_visible_devices([], "GPU")
    assert tf.config.experimental.get_memory_info("CPU:0") == {"current": 0, "peak": 0}
    assert tf.config.experimental.get_device_details(CPU) == {}
    with pytest.raises(ValueError, match="non-GPU"):
        tf.config.experimental.set_memory_growth(CPU, True)
    with pytest.raises(KeyError):
        tf.config.experimental.get_memory_growth(CPU)
    with pytest.raises(ValueError, match="Unrecognized device"):
        tf.config.set_visible_devices(["x"])
    with pytest.raises(NotImplementedError, match="cannot be hidden"):
        tf.config.set_visible_devices([], "CPU")
    with pytest.raises(ValueError, match="GPU:3"):
        tf.config.experimental.get_memory_info("GPU:3")


def test_gpus(two_gpus):
    """GPUs are listed, hidden and shown again; sessions made later see those that are left."""
    first, second = tf.config.list_physical_devices("GPU")
    assert first == GPU
    tf.config.set_visible_devices(first, "GPU")
    assert tf.config.get_visible_devices() == [CPU, first] and devices.usable_gpus() == 1
    assert [each.name for each in tf.config.list_logical_devices("GPU")] == ["/device:GPU:0"]
    tf.config.set_visible_devices([], "GPU")
    assert devices.Placement(None).gpu is None
    with pytest.raises(NotImplementedError, match="CUDA_VISIBLE_DEVICES"):
        tf.config.set_visible_devices([second], "GPU")
    assert tf.config.experimental.get_memory_growth(first) is None
    tf.config.experimental.set_memory_growth(first, True)
    assert tf.config.experimental.get_memory_growth(first) is True


def test_logical_devices(two_gpus):
    """A device is one logical device; limits are for GPUs."""
    plain = tf.config.LogicalDeviceConfiguration()
    assert tf.config.get_logical_device_configuration(GPU) is None
    tf.config.set_logical_device_configuration(GPU, [plain])
    assert tf.config.get_logical_device_configuration(GPU) == [plain]
    with pytest.raises(NotImplementedError, match="cannot be 2"):
        tf.config.set_logical_device_configuration(GPU, [plain, plain])
    with pytest.raises(ValueError, match="CPU"):
        tf.config.set_logical_device_configuration(CPU, [tf.config.LogicalDeviceConfiguration(memory_limit=9)])
    with pytest.raises(ValueError, match="virtual devices configured"):
        tf.config.experimental.set_memory_growth(GPU, True)


def test_threads():
    """The number of threads of one op is torch's; zero is the default."""
    before = torch.get_num_threads()
    try:
        tf.config.threading.set_intra_op_parallelism_threads(1)
        assert torch.get_num_threads() == 1 == tf.config.threading.get_intra_op_parallelism_threads()
        tf.config.threading.set_intra_op_parallelism_threads(0)
        assert torch.get_num_threads() == device_config._DEFAULT_THREADS
        tf.config.threading.set_inter_op_parallelism_threads(3)
        assert tf.config.threading.get_inter_op_parallelism_threads() == 3
        with pytest.raises(ValueError, match="-1"):
            tf.config.threading.set_intra_op_parallelism_threads(-1)
    finally:
        tf.config.threading.set_inter_op_parallelism_threads(0)
        torch.set_num_threads(before)
