"""What a conversion starts from: a session's graph, a frozen GraphDef, a SavedModel, concrete functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from stoker._src.base import dtypes, nest
from stoker._src.base.errors import OpError
from stoker._src.base.shapes import Shape
from stoker._src.formats import gfile
from stoker._src.formats.message_files import parse_text
from stoker._src.formats.protos import GraphDef
from stoker._src.graph import graph_util
from stoker._src.graph.graph import Graph
from stoker._src.graph.interchange.importer import import_graph_def
from stoker._src.graph.tensor import Operation
from stoker._src.graph.tensor import Tensor as GraphTensor
from stoker._src.graph.tensor_spec import TensorSpec
from stoker._src.lite.convert import Source
from stoker._src.lite.lowering import Table, Unsupported, Value, Variable, function_of, needed_ops
from stoker._src.ops.control_flow.functional_ops import IF
from stoker._src.runtime.session import Session
from stoker._src.saved_model import constants, files
from stoker._src.saved_model.loader import load_into
from stoker._src.saved_model.signatures import get_tensor_from_tensor_info
