"""Protocol messages: names, fields and bytes."""

import subprocess
import sys

import pytest

from stoker._src.formats import protos


def test_example_bytes():
    """An Example serializes to the bytes of TensorFlow's message: numbers packed, one map entry per feature."""
    example = protos.Example()
    example.features.feature["a"].float_list.value[:] = [1, 2]
    assert example.SerializeToString() == b"\n\x13\n\x11\n\x01a\x12\x0c\x12\n\n\x08\x00\x00\x80?\x00\x00\x00@"
    ints = protos.Int64List(value=[1, -1, 300])
    assert ints.SerializeToString() == b"\n\r\x01" + b"\xff" * 9 + b"\x01" + b"\xac\x02"
    assert protos.Int64List.FromString(b"\x08\x05\x08\x06").value == [5, 6]


def test_map_entries_are_classes():
    """Map entries are nested message classes with a key and a value."""
    for entry, key in (
        (protos.Features.FeatureEntry, "a"),
        (protos.FeatureLists.FeatureListEntry, "a"),
        (protos.JobDef.TasksEntry, 3),
    ):
        assert entry(key=key).key == key
        assert entry.DESCRIPTOR.fields_by_name["value"].number == 2


@pytest.mark.parametrize(
    ("message", "data"),
    [
        (
            protos.ServerDef(job_name="w", task_index=2, protocol="grpc", port=5, replica=1),
            "12017718022a046772706330054001",
        ),
        (protos.CheckpointState(model_checkpoint_path="m", all_model_checkpoint_paths=["m"]), "0a016d12016d"),
        (
            protos.QueueRunnerDef(queue_name="q", queue_closed_exception_types=[11]),
            "0a01712a010b",
        ),
        (protos.SavedModel(saved_model_schema_version=1, meta_graphs=[protos.MetaGraphDef()]), "08011200"),
        (protos.BundleHeaderProto(num_shards=1, version=protos.VersionDef(producer=1)), "08011a020801"),
        (
            protos.BundleEntryProto(dtype=protos.DataType.DT_FLOAT, shard_id=1, offset=2, size=4, crc32c=7),
            "08011801200228043507000000",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_field_numbers(message, data):
    """Fields have TensorFlow's numbers and wire types."""
    assert message.SerializeToString(deterministic=True).hex() == data
    assert type(message).FromString(bytes.fromhex(data)) == message


def test_slices_tell_whole_dimensions_from_empty_ones():
    """An extent knows whether a length was given."""
    extent = protos.TensorSliceProto.Extent(start=1)
    assert not extent.HasField("length")
    extent.length = 0
    assert extent.HasField("length")


def test_every_name_is_a_message_or_an_enum():
    """What the module exports has a descriptor, in the packages that cannot collide with TensorFlow's."""
    for name in protos.__all__:
        assert getattr(protos, name).DESCRIPTOR.full_name.split(".")[0] in ("stoker", "tensorboard"), name


@pytest.mark.parametrize("implementation", ["upb", "python"])
def test_import_without_warnings(implementation):
    """Both implementations of protobuf import the generated code with warnings as errors."""
    code = "from stoker._src.formats import protos; protos.ServerDef(cluster=protos.ClusterDef(job=[protos.JobDef()]))"
    environment = {"PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": implementation, "PYTHONPATH": ":".join(sys.path)}
    subprocess.run([sys.executable, "-W", "error", "-c", code], env=environment, check=True)


# Values of a checkpoint's tables as TensorFlow 2.21 wrote them, for `v` of [2, 3] and `w` of [4, 2] in two parts.
BUNDLE_ENTRY = "0801120812020802120208032818357aebf5ab"
BUNDLE_PARTITIONED = "0801120812020804120208023a080a0210020a0210023a0a0a04080210020a021002"
V1_META = (
    "0a420a150a017612081202080212020803180122040a000a000a250a0177120812020804120208021801"
    "22080a0210020a021002220a0a04080210020a02100212020801"
)
V1_SLICE = "12250a017612040a000a001a1a2a180000803f0000004000004040000080400000a0400000c040"


def test_checkpoint_messages_of_tensorflow():
    """The tables of real checkpoints are read field by field and written back byte for byte."""
    entry = protos.BundleEntryProto.FromString(bytes.fromhex(BUNDLE_ENTRY))
    assert (entry.dtype, [dim.size for dim in entry.shape.dim], entry.offset, entry.size) == (1, [2, 3], 0, 24)
    parts = protos.BundleEntryProto.FromString(bytes.fromhex(BUNDLE_PARTITIONED))
    extents = [[(extent.start, extent.length) for extent in part.extent] for part in parts.slices]
    assert extents == [[(0, 2), (0, 2)], [(2, 2), (0, 2)]]
    meta = protos.SavedTensorSlices.FromString(bytes.fromhex(V1_META)).meta
    assert [(tensor.name, tensor.type, len(tensor.slice)) for tensor in meta.tensor] == [("v", 1, 1), ("w", 1, 2)]
    data = protos.SavedTensorSlices.FromString(bytes.fromhex(V1_SLICE)).data
    assert (data.name, list(data.data.float_val)) == ("v", [1, 2, 3, 4, 5, 6])
    for message, text in ((entry, BUNDLE_ENTRY), (parts, BUNDLE_PARTITIONED)):
        assert message.SerializeToString(deterministic=True).hex() == text
    for text in (V1_META, V1_SLICE):
        message = protos.SavedTensorSlices.FromString(bytes.fromhex(text))
        assert message.SerializeToString(deterministic=True).hex() == text
