"""Variables, session handles, files, printing, Python functions."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from . import Run, program

ROWS = np.arange(6, dtype=np.float32).reshape(2, 3)


def _by_reference(run: Run, make: Any) -> None:
    raw, tf = run.raw, run.tf
    for dtype in (tf.float32, tf.int32, tf.string, tf.bool, tf.complex64, tf.bfloat16):
        value = ROWS.astype("S").astype(object) if dtype == tf.string else ROWS.astype(dtype.as_numpy_dtype)
        variable = make(shape=[2, 3], dtype=dtype)
        run.get(raw.IsVariableInitialized(ref=variable))
        run.fails(lambda: tf.identity(variable))  # noqa: B023
        assigned = raw.Assign(ref=variable, value=tf.constant(value, dtype))
        run.get(assigned)
        run.get(raw.IsVariableInitialized(ref=variable))
        run.get(tf.identity(variable))
        run.fails(lambda: raw.Assign(ref=variable, value=tf.constant(value[0], dtype)))  # noqa: B023
        run.do(raw.Assign(ref=variable, value=tf.constant(value[:1], dtype), validate_shape=False))
        run.get(tf.identity(variable))


@program("VariableV2")
def reference_variable(run: Run) -> None:
    _by_reference(run, run.raw.VariableV2)


@program("Variable")
def older_reference_variable(run: Run) -> None:
    _by_reference(run, run.raw.Variable)


@program("TemporaryVariable", "DestroyTemporaryVariable")
def temporary_variable(run: Run) -> None:
    raw, tf = run.raw, run.tf
    made = raw.TemporaryVariable(shape=[2, 3], dtype=tf.float32, var_name="t")
    filled = raw.Assign(ref=made, value=ROWS)
    added = raw.AssignAdd(ref=filled, value=ROWS)
    run.get(raw.DestroyTemporaryVariable(ref=added, var_name="t"))
    run.get(raw.DestroyTemporaryVariable(ref=added, var_name="t"))  # each run makes it anew


@program("VarHandleOp", "DestroyResourceOp", "DisableCopyOnRead", eager=True)
def resource_variable(run: Run) -> None:
    raw, tf = run.raw, run.tf
    variable = raw.VarHandleOp(dtype=tf.float32, shape=[2, 3], shared_name="held")
    run.get(raw.VarIsInitializedOp(resource=variable))
    run.fails(lambda: raw.ReadVariableOp(resource=variable, dtype=tf.float32))
    run.do(raw.AssignVariableOp(resource=variable, value=ROWS))
    run.do(raw.DisableCopyOnRead(resource=variable))
    run.get(raw.ReadVariableOp(resource=variable, dtype=tf.float32))
    run.do(raw.AssignAddVariableOp(resource=variable, value=ROWS))
    run.get(raw.ReadVariableOp(resource=variable, dtype=tf.float32))
    same = raw.VarHandleOp(dtype=tf.float32, shape=[2, 3], shared_name="held")
    run.get(raw.ReadVariableOp(resource=same, dtype=tf.float32))
    if not run.eager:
        run.fails(lambda: raw.ReadVariableOp(resource=variable, dtype=tf.int32))
        run.fails(
            lambda: raw.AssignVariableOp(resource=variable, value=ROWS[0])
        )  # eagerly TensorFlow's handles have no shape
    run.do(raw.DestroyResourceOp(resource=variable))
    run.get(raw.VarIsInitializedOp(resource=variable))
    run.fails(lambda: raw.ReadVariableOp(resource=variable, dtype=tf.float32))
    run.do(raw.DestroyResourceOp(resource=variable))  # ignore_lookup_error
    run.fails(lambda: raw.DestroyResourceOp(resource=variable, ignore_lookup_error=False))


@program("GetSessionHandle", "GetSessionTensor", "DeleteSessionTensor")
def session_handles(run: Run) -> None:
    tf = run.tf
    for value in (ROWS, np.int64(-5), np.array([b"a", b"\xff"], object)):
        handle = run.do(tf.get_session_handle(tf.constant(value)))
        place, tensor = tf.get_session_tensor(handle.handle, tf.as_dtype(tf.constant(value).dtype))
        run.get(tensor, {place: handle.handle})
        run.get(tensor, {place: handle.handle})
        place, delete = tf.delete_session_tensor(handle.handle)
        run.do(delete, {place: handle.handle})
        place, gone = tf.get_session_tensor(handle.handle, tf.as_dtype(tf.constant(value).dtype))
        try:
            run.do(gone, {place: handle.handle})
        except Exception as error:
            run.note(type(error).__name__)


# -- files and printing ------------------------------------------------------------------------------------------


@program("ReadFile", "WriteFile", "MatchingFiles", eager=True)
def files(run: Run) -> None:
    raw = run.raw
    path = run.file("deep") + os.sep + "er" + os.sep + "new.bin"
    run.do(raw.WriteFile(filename=path, contents=b"\x00bytes\xff"))
    run.get(raw.ReadFile(filename=path))
    run.do(raw.WriteFile(filename=path, contents=b""))
    run.get(raw.ReadFile(filename=path))
    run.fails(lambda: raw.ReadFile(filename=run.file("missing")))
    run.fails(lambda: raw.ReadFile(filename=str(run.folder)))
    for name in ("b1.txt", "a2.txt", "c[3].txt", "d.bin"):
        run.file(name, b"x")
    root = f"{run.folder}{os.sep}"
    for patterns in ("*.txt", "?[0-9].txt", ["*.bin", "a*"], "none*", "deep/*/*", "[a-b]?.txt", []):
        listed = [root + each for each in patterns] if isinstance(patterns, list) else root + patterns
        found = run.do(raw.MatchingFiles(pattern=np.array(listed, object)))
        run.note(np.array([os.path.relpath(each, os.fsencode(root)) for each in found], object))


@program("Save", "SaveSlices", "SaveV2", "Restore", "RestoreSlice", "RestoreV2", "MergeV2Checkpoints", eager=True)
def checkpoints(run: Run) -> None:
    raw, float32 = run.raw, run.tf.float32
    whole = {"tensor_names": ["rows", "words"], "tensors": [ROWS, np.array([b"a", b""], object)]}
    run.do(raw.SaveV2(prefix=run.file("new"), shape_and_slices=["", ""], **whole))
    run.do(raw.Save(filename=run.file("old"), tensor_names=["rows"], data=[ROWS]))
    size = f"{2 * len(ROWS)} {ROWS.shape[1]}"
    halves = [f"{size} 0,{len(ROWS)}:-", f"{size} {len(ROWS)},{len(ROWS)}:-"]
    run.do(
        raw.SaveSlices(
            filename=run.file("halves"), tensor_names=["v"] * 2, shapes_and_slices=halves, data=[ROWS, -ROWS]
        )
    )
    for number, half in enumerate(halves):
        run.do(
            raw.SaveV2(
                prefix=run.file(f"part{number}"), tensor_names=["v"], shape_and_slices=[half], tensors=[ROWS + number]
            )
        )
    parts = [run.file("part0"), run.file("part1")]
    run.do(raw.MergeV2Checkpoints(checkpoint_prefixes=parts, destination_prefix=run.file("merged")))
    for name in ("new.index", "new.data-00000-of-00001", "old", "halves", "merged.index", "merged.data-00001-of-00002"):
        run.note((run.folder / name).read_bytes())

    def read(name: str, tensor: str, cut: str, dtype: Any) -> Any:
        return raw.RestoreV2(prefix=run.file(name), tensor_names=[tensor], shape_and_slices=[cut], dtypes=[dtype])

    across = f"{size} {len(ROWS) - 1},2:-"
    for name, tensor, cut in (
        ("new", "rows", ""),
        ("old", "rows", ""),
        ("halves", "v", across),
        ("merged", "v", across),
    ):
        run.get(read(name, tensor, cut, float32))
    run.get(read("new", "words", "", run.tf.string))
    run.get(raw.Restore(file_pattern=run.file("old"), tensor_name="rows", dt=float32))
    run.get(raw.RestoreSlice(file_pattern=run.file("halves"), tensor_name="v", shape_and_slice=across, dt=float32))
    for name, tensor, cut, dtype in (
        ("none", "rows", "", float32), ("new", "none", "", float32), ("old", "none", "", float32),
        ("new", "rows", "", run.tf.int32), ("merged", "v", "9 9 0,1:-", float32), ("new", "rows", "junk", float32),
    ):  # fmt: skip
        run.fails(lambda: read(name, tensor, cut, dtype))  # noqa: B023
    run.fails(lambda: raw.MergeV2Checkpoints(checkpoint_prefixes=parts, destination_prefix=run.file("again")))


@program("GenerateVocabRemapping", "LoadAndRemapMatrix", eager=True)
def vocabularies(run: Run) -> None:
    raw = run.raw
    old, new, twice = run.file("old", b"a\nb\nc\n"), run.file("new", b"c\nx\na\ny\n"), run.file("twice", b"a\na\n")
    remap = raw.GenerateVocabRemapping
    for offset, count, size in ((0, 4, -1), (1, 2, 2), (0, 0, -1)):
        run.get(
            remap(
                new_vocab_file=new,
                old_vocab_file=old,
                new_vocab_offset=offset,
                num_new_vocab=count,
                old_vocab_size=size,
            )
        )
    run.get(remap(new_vocab_file=twice, old_vocab_file=old, new_vocab_offset=0, num_new_vocab=2))
    for files, count, size in (
        ((new, old), 9, -1),
        ((new, twice), 4, -1),
        ((run.file("none"), old), 2, -1),
        ((new, old), 4, 9),
    ):
        named = {"new_vocab_file": files[0], "old_vocab_file": files[1], "num_new_vocab": count, "old_vocab_size": size}
        run.fails(lambda: remap(new_vocab_offset=0, **named))  # noqa: B023
    path = run.file("saved")
    matrix = np.arange(6, dtype=np.float32).reshape(3, 2)
    run.do(raw.SaveV2(prefix=path, tensor_names=["m", "v"], shape_and_slices=["", ""], tensors=[matrix, matrix[0]]))

    def load(rows: Any, cols: Any = (), values: Any = (), name: str = "m", at_once: int = -1, **sizes: int) -> Any:
        return raw.LoadAndRemapMatrix(
            ckpt_path=path, old_tensor_name=name, row_remapping=np.array(rows, np.int64), col_remapping=np.array(cols, np.int64),
            initializing_values=np.array(values, np.float32), max_rows_in_memory=at_once, **{"num_rows": len(rows), "num_cols": 2, **sizes},
        )  # fmt: skip

    run.get(load([2, -1, 0], values=[9, 8]))
    run.get(load([2, -1, 0], values=[9, 8], at_once=1))
    run.get(load([2, -1, 0], [1, -1, 0], range(5), num_cols=3))
    run.get(load([-2, 0, 1], values=[9, 8]))
    for arguments in (
        {"rows": [2, -1], "values": [9]}, {"rows": [0, 0]}, {"rows": [0], "num_rows": 2}, {"rows": [0], "num_cols": 3},
        {"rows": [0], "name": "none"}, {"rows": [0], "name": "v"}, {"rows": [[0]]},
    ):  # fmt: skip
        run.fails(lambda: load(**arguments))  # noqa: B023


@program("PrintV2", "StringFormat", eager=True)
def printing_to_a_file(run: Run) -> None:
    raw = run.raw
    path = run.file("printed.txt")
    values = [ROWS, np.array([1.5, np.nan, -np.inf, 1e30, 1e-7, -0.0], np.float32), np.array([b"a", b'q"\n'], object),
              np.arange(20, dtype=np.int64), np.array(True), np.float64(1) / 3, np.zeros((2, 0), np.int32)]  # fmt: skip
    for value in values:
        text = raw.StringFormat(inputs=[value], template="v = {} !", placeholder="{}", summarize=3)
        run.do(raw.PrintV2(input=text, output_stream=f"file://{path}", end="|\n"))
    run.do(raw.PrintV2(input=b"end", output_stream=f"file://{path}"))
    with open(path, "rb") as file:
        run.note(file.read())


@program("Print")
def printing_passes_values(run: Run) -> None:
    for first in (1, -1):
        run.get(run.raw.Print(input=ROWS, data=[ROWS, np.array([b"text"], object)], message="m ", first_n=first))


# -- Python ------------------------------------------------------------------------------------------------------


@program("PyFunc", "PyFuncStateless", "EagerPyFunc")
def python_functions(run: Run) -> None:
    tf = run.tf
    x = tf.placeholder(tf.float32, [2, 3])
    words = np.array([b"a", b"\xff"], object)
    run.get(tf.py_func(lambda a: (a * 2, np.int64(a.size)), [x], [tf.float32, tf.int64]), {x: ROWS})
    run.get(tf.py_func(lambda a: a.T, [x], tf.float32, stateful=False), {x: ROWS})
    run.get(tf.numpy_function(lambda w: np.array([each + b"!" for each in w], object), [words], tf.string))
    run.fails(lambda: tf.py_func(lambda: np.float32(1), [], tf.int32))
    run.fails(lambda: tf.py_func(lambda: 1 / 0, [], tf.int32))
    run.fails(lambda: tf.py_func(lambda: (1, 2), [], tf.int32))
    y = tf.py_function(lambda a: a * a + 1, [x], tf.float32)
    run.get([y, *tf.gradients(y, x, tf.ones([2, 3]))], {x: ROWS})


@program("Const", "Placeholder", "NoOp", "ControlTrigger", "Fact", "Empty")
def sources(run: Run) -> None:
    raw, tf = run.raw, run.tf
    for value in (ROWS, np.int8(-128), np.array([b"s", b""], object), np.zeros((0, 2)), np.array([1 + 2j])):
        dtype = tf.string if np.asarray(value).dtype.kind == "O" else tf.as_dtype(np.asarray(value).dtype)
        run.get(tf.constant(value, dtype))
        place = raw.Placeholder(dtype=dtype, shape=np.shape(value))
        run.get(place, {place: value})
        run.fails(lambda: place)  # noqa: B023 (not fed)
    with tf.control_dependencies([raw.NoOp()]):
        again = raw.ControlTrigger()
    with tf.control_dependencies([again]):
        run.get(raw.Fact())
    run.get(raw.Empty(shape=np.array([2, 3], np.int32), dtype=tf.float32, init=True))
    run.get(raw.Empty(shape=np.array([0], np.int32), dtype=tf.int64))


@program("Timestamp", "NonDeterministicInts")
def outside_the_program(run: Run) -> None:
    """The values are nobody's to compare: their dtypes, shapes and plausibility are."""
    before, after = run.do(run.raw.Timestamp()), run.do(run.raw.Timestamp())
    run.note(np.asarray(before).dtype.name)
    run.note(1.7e9 < before <= after)
    for dtype in (run.tf.int32, run.tf.int64, run.tf.uint32, run.tf.uint64):
        drawn = run.do(run.raw.NonDeterministicInts(shape=np.array([3, 50], np.int32), dtype=dtype))
        run.note(np.zeros_like(drawn))
        run.note(len(np.unique(drawn)) > 140)


@program("MutexV2", "MutexLock", "ConsumeMutexLock")
def mutexes(run: Run) -> None:
    raw, tf = run.raw, run.tf
    mutex = raw.MutexV2(shared_name="mutex")
    counter = raw.VarHandleOp(dtype=tf.int32, shape=[], shared_name="counter")
    run.do(raw.AssignVariableOp(resource=counter, value=np.int32(0)))
    steps = []
    for _ in range(5):  # without the lock, reads and writes of one could go between those of another
        lock = raw.MutexLock(mutex=mutex)
        with tf.control_dependencies([lock]):
            read = raw.ReadVariableOp(resource=counter, dtype=tf.int32)
            written = raw.AssignVariableOp(resource=counter, value=2 * read + 1)
        with tf.control_dependencies([written]):
            steps.append(raw.ConsumeMutexLock(mutex_lock=lock))
    run.do(steps)
    run.get(raw.ReadVariableOp(resource=counter, dtype=tf.int32))
