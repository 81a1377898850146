"""The options of `tf.profiler.profile`."""

from __future__ import annotations

from typing import Any

from stoker._src.base.export import export

TRAINABLE = "_trainable_variables"


@export(v1="profiler.ProfileOptionBuilder")
class ProfileOptionBuilder:
    """Builds the options of `profile`, which are dictionaries, step by step."""

    def __init__(self, options: dict[str, Any] | None = None) -> None:
        self._options: dict[str, Any] = {
            "max_depth": 100, "min_bytes": 0, "min_micros": 0, "min_params": 0, "min_float_ops": 0, "min_occurrence": 0,
            "order_by": "name", "account_type_regexes": [".*"], "start_name_regexes": [".*"], "trim_name_regexes": [],
            "show_name_regexes": [".*"], "hide_name_regexes": [], "account_displayed_op_only": False, "select": ["micros"],
            "step": -1, "output": "stdout",
        } if options is None else {**options}  # fmt: skip

    @staticmethod
    def _start(**changes: Any) -> dict[str, Any]:
        options = ProfileOptionBuilder()._options
        return {**options, "max_depth": 10000, "account_displayed_op_only": True, **changes}

    @staticmethod
    def trainable_variables_parameter() -> dict[str, Any]:
        """Returns options for the parameters of trainable variables."""
        return ProfileOptionBuilder._start(account_type_regexes=[TRAINABLE], select=["params"])

    @staticmethod
    def float_operation() -> dict[str, Any]:
        """Returns options for floating point operations, counted from static shapes."""
        return ProfileOptionBuilder._start(min_float_ops=1, order_by="float_ops", select=["float_ops"])

    @staticmethod
    def time_and_memory(
        min_micros: int = 1,
        min_bytes: int = 1,
        min_accelerator_micros: int = 0,
        min_cpu_micros: int = 0,
        min_peak_bytes: int = 0,
        min_residual_bytes: int = 0,
        min_output_bytes: int = 0,
    ) -> dict[str, Any]:
        """Returns options for the times of a traced run, and the bytes of its outputs."""
        return ProfileOptionBuilder._start(
            min_micros=min_micros,
            min_bytes=min_bytes,
            min_accelerator_micros=min_accelerator_micros,
            min_cpu_micros=min_cpu_micros,
            min_peak_bytes=min_peak_bytes,
            min_residual_bytes=min_residual_bytes,
            min_output_bytes=min_output_bytes,
            order_by="micros",
            select=["micros", "bytes"],
        )

    def build(self) -> dict[str, Any]:
        """Returns the options."""
        return {**self._options}

    def _with(self, **changes: Any) -> ProfileOptionBuilder:
        self._options.update(changes)
        return self

    def with_max_depth(self, max_depth: int) -> ProfileOptionBuilder:
        """Limits the number of levels shown."""
        return self._with(max_depth=max_depth)

    def with_min_memory(
        self, min_bytes: int = 0, min_peak_bytes: int = 0, min_residual_bytes: int = 0, min_output_bytes: int = 0
    ) -> ProfileOptionBuilder:
        """Shows only nodes with at least this many bytes."""
        return self._with(
            min_bytes=min_bytes,
            min_peak_bytes=min_peak_bytes,
            min_residual_bytes=min_residual_bytes,
            min_output_bytes=min_output_bytes,
        )

    def with_min_execution_time(
        self, min_micros: int = 0, min_accelerator_micros: int = 0, min_cpu_micros: int = 0
    ) -> ProfileOptionBuilder:
        """Shows only nodes that took at least this many microseconds."""
        return self._with(
            min_micros=min_micros, min_accelerator_micros=min_accelerator_micros, min_cpu_micros=min_cpu_micros
        )

    def with_min_parameters(self, min_params: int) -> ProfileOptionBuilder:
        """Shows only nodes with at least this many parameters."""
        return self._with(min_params=min_params)

    def with_min_occurrence(self, min_occurrence: int) -> ProfileOptionBuilder:
        """Shows only op types that occur at least this often."""
        return self._with(min_occurrence=min_occurrence)

    def with_min_float_operations(self, min_float_ops: int) -> ProfileOptionBuilder:
        """Shows only nodes with at least this many floating point operations."""
        return self._with(min_float_ops=min_float_ops)

    def with_accounted_types(self, account_type_regexes: list[str]) -> ProfileOptionBuilder:
        """Counts only nodes of these types."""
        return self._with(account_type_regexes=list(account_type_regexes))

    def with_node_names(
        self,
        start_name_regexes: list[str] | None = None,
        show_name_regexes: list[str] | None = None,
        hide_name_regexes: list[str] | None = None,
        trim_name_regexes: list[str] | None = None,
    ) -> ProfileOptionBuilder:
        """Selects the nodes to start from, show, hide or trim by name."""
        names = {
            "start_name_regexes": start_name_regexes,
            "show_name_regexes": show_name_regexes,
            "hide_name_regexes": hide_name_regexes,
            "trim_name_regexes": trim_name_regexes,
        }
        return self._with(**{key: list(value) for key, value in names.items() if value is not None})

    def account_displayed_op_only(self, is_true: bool) -> ProfileOptionBuilder:
        """Sets whether totals include only the nodes shown."""
        return self._with(account_displayed_op_only=is_true)

    def with_empty_output(self) -> ProfileOptionBuilder:
        """Prints nothing."""
        return self._with(output="none")

    def with_stdout_output(self) -> ProfileOptionBuilder:
        """Prints the report."""
        return self._with(output="stdout")

    def with_file_output(self, outfile: str) -> ProfileOptionBuilder:
        """Writes the report to a file."""
        return self._with(output=f"file:outfile={outfile}")

    def with_timeline_output(self, timeline_file: str) -> ProfileOptionBuilder:
        """Writes the traced run to a file in Chrome's trace format."""
        return self._with(output=f"timeline:outfile={timeline_file}")

    def with_step(self, step: int) -> ProfileOptionBuilder:
        """Selects one step of a Profiler."""
        return self._with(step=step)

    def order_by(self, attribute: str) -> ProfileOptionBuilder:
        """Sorts nodes by "name", or by one of the numbers in descending order."""
        return self._with(order_by=attribute)

    def with_pprof_output(self, pprof_file: str) -> ProfileOptionBuilder:
        """Writes a file for pprof. It can show the view "code", and one number of it."""
        return self._with(output=f"pprof:outfile={pprof_file}")

    def select(self, attributes: list[str]) -> ProfileOptionBuilder:
        """Selects what to show: params, float_ops, bytes, peak_bytes, residual_bytes, output_bytes, micros, accelerator_micros, cpu_micros,
        device, op_types, occurrence, input_shapes."""
        return self._with(select=list(attributes))
