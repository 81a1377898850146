"""Public names of tf.contrib.eager."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.compat.v1.contrib.eager import metrics as metrics
from stoker._src.contrib.eager import defun as defun
from stoker._src.contrib.eager import EagerVariableStore as EagerVariableStore
from stoker._src.contrib.eager import get_optimizer_variables as get_optimizer_variables
from stoker._src.contrib.eager import gradients_function as gradients_function
from stoker._src.contrib.eager import implicit_gradients as implicit_gradients
from stoker._src.contrib.eager import implicit_value_and_gradients as implicit_value_and_gradients
from stoker._src.contrib.eager import Iterator as Iterator
from stoker._src.contrib.eager import list_devices as list_devices
from stoker._src.contrib.eager import num_gpus as num_gpus
from stoker._src.contrib.eager import Saver as Saver
from stoker._src.contrib.eager import value_and_gradients_function as value_and_gradients_function
from stoker._src.contrib.eager import Variable as Variable
from stoker._src.graph.behavior import enable_eager_execution as enable_eager_execution
from stoker._src.graph.behavior import executing_eagerly as executing_eagerly
from stoker._src.graph.behavior import executing_eagerly as in_eager_mode
from stoker._src.graph.tensor_spec import TensorSpec as TensorSpec
from stoker._src.ops.control_flow.custom_gradients import custom_gradient as custom_gradient
from stoker._src.ops.control_flow.python_functions import py_function as py_func
from stoker._src.ops.variables.template import make_template as make_template
from stoker._src.runtime.eager.tape import GradientTape as GradientTape
from stoker._src.runtime.functions.def_function import function as function
from stoker._src.train.checkpoints.checkpoint import CheckpointV1 as Checkpoint
