"""Public names of tf.test."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.testing.gradient_checker import compute_gradient as compute_gradient
from stoker._src.testing.gradient_checker import compute_gradient_error as compute_gradient_error
from stoker._src.testing.test_case import assert_equal_graph_def as assert_equal_graph_def
from stoker._src.testing.test_case import Benchmark as Benchmark
from stoker._src.testing.test_case import get_temp_dir as get_temp_dir
from stoker._src.testing.test_case import gpu_device_name as gpu_device_name
from stoker._src.testing.test_case import is_built_with_cuda as is_built_with_cuda
from stoker._src.testing.test_case import is_built_with_gpu_support as is_built_with_gpu_support
from stoker._src.testing.test_case import is_built_with_rocm as is_built_with_rocm
from stoker._src.testing.test_case import is_built_with_xla as is_built_with_xla
from stoker._src.testing.test_case import is_gpu_available as is_gpu_available
from stoker._src.testing.test_case import main as main
from stoker._src.testing.test_case import mock as mock
from stoker._src.testing.test_case import test_src_dir_path as test_src_dir_path
from stoker._src.testing.test_case import TestCase as TestCase
