"""`tensorflow.python.tools.inspect_checkpoint`: prints the tensors of a checkpoint."""

from __future__ import annotations

import math
import re
from typing import Any

from stoker._src.base.dtypes import as_dtype
from stoker._src.base.errors import OpError
from stoker._src.formats.protos import DataType
from stoker._src.train.checkpoints.reader import CheckpointReader


def print_tensors_in_checkpoint_file(
    file_name: Any,
    tensor_name: str,
    all_tensors: bool,
    all_tensor_names: bool = False,
    count_exclude_pattern: str = "",
) -> None:
    """Prints tensors of a checkpoint.

    Args:
        file_name: the prefix of its files.
        tensor_name: the tensor to print; "" for a list of all, with shapes.
        all_tensors: whether to print the values of all tensors.
        all_tensor_names: whether to print the names of all tensors.
        count_exclude_pattern: a regular expression of names that the count of parameters leaves out.
    """
    try:
        reader = CheckpointReader(file_name)
    except OpError as error:  # TensorFlow's tool prints what it cannot read
        print(error.message)
        return
    shapes, kinds = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    if all_tensors or all_tensor_names:
        for name in sorted(shapes):
            print("tensor_name: ", name)
            if all_tensors:
                print(reader.get_tensor(name))
    elif not tensor_name:
        for name in sorted(shapes):
            sizes = ",".join(map(str, shapes[name]))
            print(f"{name} ({DataType.Name(as_dtype(kinds[name]).as_datatype_enum)}) [{sizes}]")
        print()
    else:
        print("tensor_name: ", tensor_name)
        print(reader.get_tensor(tensor_name))
    counted = [
        shape for name, shape in shapes.items() if not (count_exclude_pattern and re.match(count_exclude_pattern, name))
    ]
    print(f"# Total number of params: {sum(map(math.prod, counted))}")
