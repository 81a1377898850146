"""Public names of tf.contrib.framework."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.compat.v1.contrib.framework import nest as nest
from stoker._src.contrib.framework.arg_scopes import add_arg_scope as add_arg_scope
from stoker._src.contrib.framework.arg_scopes import arg_scope as arg_scope
from stoker._src.contrib.framework.arg_scopes import arg_scoped_arguments as arg_scoped_arguments
from stoker._src.contrib.framework.arg_scopes import current_arg_scope as current_arg_scope
from stoker._src.contrib.framework.arg_scopes import has_arg_scope as has_arg_scope
from stoker._src.contrib.framework.variables import add_model_variable as add_model_variable
from stoker._src.contrib.framework.variables import assign_from_checkpoint as assign_from_checkpoint
from stoker._src.contrib.framework.variables import assign_from_checkpoint_fn as assign_from_checkpoint_fn
from stoker._src.contrib.framework.variables import assign_from_values as assign_from_values
from stoker._src.contrib.framework.variables import assign_from_values_fn as assign_from_values_fn
from stoker._src.contrib.framework.variables import filter_variables as filter_variables
from stoker._src.contrib.framework.variables import get_local_variables as get_local_variables
from stoker._src.contrib.framework.variables import get_model_variables as get_model_variables
from stoker._src.contrib.framework.variables import get_trainable_variables as get_trainable_variables
from stoker._src.contrib.framework.variables import get_unique_variable as get_unique_variable
from stoker._src.contrib.framework.variables import get_variable_full_name as get_variable_full_name
from stoker._src.contrib.framework.variables import get_variables as get_variables
from stoker._src.contrib.framework.variables import get_variables_by_name as get_variables_by_name
from stoker._src.contrib.framework.variables import get_variables_by_suffix as get_variables_by_suffix
from stoker._src.contrib.framework.variables import get_variables_to_restore as get_variables_to_restore
from stoker._src.contrib.framework.variables import global_variable as global_variable
from stoker._src.contrib.framework.variables import local_variable as local_variable
from stoker._src.contrib.framework.variables import model_variable as model_variable
from stoker._src.contrib.framework.variables import variable as variable
from stoker._src.contrib.framework.variables import VariableDeviceChooser as VariableDeviceChooser
from stoker._src.graph.conversion import is_tensor as is_tensor
from stoker._src.ops.variables.initializers import ConvolutionDeltaOrthogonal as convolutional_delta_orthogonal
