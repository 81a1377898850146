"""Variables and lookup tables.

A variable that the model only reads is a constant. A variable that it assigns to is a resource of the interpreter, and a subgraph that runs
once initializes it. The same subgraph fills tables.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from stoker._src.graph.tensor import Operation
from stoker._src.lite.lowering import Scope, Table, Unsupported, Variable, lowers
from stoker._src.lite.model import TYPE_CODES, Operator, Tensor, type_of


@lowers("VariableV2", "Variable")
def reference_variable(scope: Scope, op: Operation) -> Any:
    return _variable(scope, op.name).value


@lowers("VarHandleOp")
def var_handle(scope: Scope, op: Operation) -> Any:
    return _variable(scope, op.name)


def _variable(scope: Scope, name: str) -> Variable:
    found = scope.conversion.variables.get(name)
    if found is None:
        raise Unsupported(
            f"the graph is not frozen: variable '{name}' has no value", "freeze it, or convert it with from_session"
        )
    return found


@lowers("ReadVariableOp")
def read_variable(scope: Scope, op: Operation) -> Any:
    variable = scope.values.get(op.inputs[0])
    if not isinstance(variable, Variable):
        return variable  # a frozen graph, in which the handle itself is the value
    if not variable.assigned:
        return variable.value
    result = Tensor(scope.unique(op.name), type_of(variable.value.dtype), variable.value.shape)
    return scope.emit("READ_VARIABLE", [handle(scope, variable)], result, schema.ReadVariableOptionsT())


@lowers("ResourceGather")
def resource_gather(scope: Scope, op: Operation) -> Any:
    variable = scope.values.get(op.inputs[0])
    if not isinstance(variable, Variable):
        raise Unsupported("the variable has no value in TFLite")
    indices = scope.tensor(op.inputs[1])
    if op.attrs.get("batch_dims", 0):
        raise Unsupported("a variable's rows are looked up without batch dimensions", "use tf.gather on its value")
    result = scope.result(op)
    if result.shape is None and indices.shape is not None:
        # A function of a SavedModel does not say the shapes of the variables that it is called with.
        result.shape = (*indices.shape, *variable.value.shape[1:])
    rows = _read(scope, op, variable) if variable.assigned else scope.constant(variable.value, variable.name)
    return scope.emit("GATHER", [rows, indices], result, schema.GatherOptionsT(axis=0))


def _read(scope: Scope, op: Operation, variable: Variable) -> Tensor:
    before = scope.temporary(op, type_of(variable.value.dtype), variable.value.shape)
    return scope.emit("READ_VARIABLE", [handle(scope, variable)], before, schema.ReadVariableOptionsT())


def handle(scope: Scope, variable: Variable) -> Tensor:
    """The variable's handle in the subgraph. The first use adds the variable to the subgraph that runs once."""
    initial = scope.conversion.initializer()
    if variable not in scope.conversion.initialized:
        value = Tensor(f"{variable.name}/initial", type_of(variable.value.dtype), variable.value.shape, variable.value)
        inside = _var_handle(variable)
        initial.operators.append(inside)
        initial.operators.append(
            Operator("ASSIGN_VARIABLE", [inside.outputs[0], value], [], schema.AssignVariableOptionsT())
        )
        scope.conversion.initialized.add(variable)
    found = scope.handles.get(variable)
    if found is None:
        operator = _var_handle(variable)
        scope.subgraph.operators.append(operator)
        found = scope.handles[variable] = operator.outputs[0]
    return found


def _var_handle(variable: Variable) -> Operator:
    options = schema.VarHandleOptionsT(container="", sharedName=variable.name)
    return Operator("VAR_HANDLE", [], [Tensor(f"{variable.name}/handle", "RESOURCE", ())], options)


@lowers("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")
def assign_variable(scope: Scope, op: Operation) -> Any:
    variable = scope.values.get(op.inputs[0])
    if not isinstance(variable, Variable):
        raise Unsupported(
            "it assigns to a variable that the conversion froze", "convert a concrete function or a SavedModel"
        )
    resource, value = handle(scope, variable), scope.tensor(op.inputs[1])
    if op.type != "AssignVariableOp":
        before = _read(scope, op, variable)
        code, options = (
            ("ADD", schema.AddOptionsT()) if op.type == "AssignAddVariableOp" else ("SUB", schema.SubOptionsT())
        )
        value = scope.emit(code, [before, value], scope.temporary(op, value.type, variable.value.shape), options)
    scope.emit("ASSIGN_VARIABLE", [resource, value], [], schema.AssignVariableOptionsT())
    return None


ASSIGNMENTS = ("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")

# ---- tables -------------------------------------------------------------------------------------------------------

_TABLES = (("INT64", "STRING"), ("STRING", "INT64"))


@lowers("HashTableV2", "HashTable")
def hash_table(scope: Scope, op: Operation) -> Any:
    table = Table(op.name, op.attr("key_dtype"), op.attr("value_dtype"))
    table.keys, table.values = scope.conversion.tables.get(op.name, (None, None))
    if table.keys is None:
        raise Unsupported("the table has no entries", "initialize the tables before the conversion")
    return table


def _table_handle(scope: Scope, table: Any) -> Tensor:
    if not isinstance(table, Table):
        raise Unsupported("the table has no value in TFLite")
    if (type_of(table.key_dtype), type_of(table.value_dtype)) not in _TABLES:
        raise Unsupported(
            f"TFLite has tables from int64 to string and from string to int64, not from {table.key_dtype.name} to {table.value_dtype.name}",
            "look the keys up before the model, or use tf.gather on a constant",
        )
    initial = scope.conversion.initializer()
    if table not in scope.conversion.initialized:
        inside = _table_operator(table)
        assert table.keys is not None
        assert table.values is not None
        keys, values = (
            Tensor(f"{table.name}/{name}", type_of(dtype), array.shape, array)
            for name, dtype, array in (
                ("keys", table.key_dtype, table.keys),
                ("values", table.value_dtype, table.values),
            )
        )
        initial.operators.append(inside)
        options = schema.HashtableImportOptionsT()
        initial.operators.append(Operator("HASHTABLE_IMPORT", [inside.outputs[0], keys, values], [], options))
        scope.conversion.initialized.add(table)
    found = scope.handles.get(table)
    if found is None:
        operator = _table_operator(table)
        scope.subgraph.operators.append(operator)
        found = scope.handles[table] = operator.outputs[0]
    return found


def _table_operator(table: Table) -> Operator:
    options = schema.HashtableOptionsT(
        tableId=zlib.crc32(table.name.encode()) >> 1,
        keyDtype=TYPE_CODES[type_of(table.key_dtype)],
        valueDtype=TYPE_CODES[type_of(table.value_dtype)],
    )
    return Operator("HASHTABLE", [], [Tensor(f"{table.name}/handle", "RESOURCE", (1,))], options)


@lowers("LookupTableFindV2", "LookupTableFind")
def table_find(scope: Scope, op: Operation) -> Any:
    table = _table_handle(scope, scope.values.get(op.inputs[0]))
    keys, default = scope.tensor(op.inputs[1]), scope.tensor(op.inputs[2])
    if default.is_constant:
        assert default.data is not None
        default = scope.constant(default.data.reshape(1), default.name)
    return scope.emit("HASHTABLE_FIND", [table, keys, default], scope.result(op), schema.HashtableFindOptionsT())


@lowers("LookupTableSizeV2", "LookupTableSize")
def table_size(scope: Scope, op: Operation) -> Any:
    table = _table_handle(scope, scope.values.get(op.inputs[0]))
    result = scope.result(op)
    sizes = scope.emit("HASHTABLE_SIZE", [table], scope.temporary(op, "INT64", (1,)), schema.HashtableSizeOptionsT())
    return scope.emit(
        "RESHAPE",
        [sizes, scope.constant(np.empty(0), "shape", np.int32)],
        result,
        schema.ReshapeOptionsT(newShape=np.empty(0, np.int32)),
    )
