"""Public names of messages, files, records and nested structures, which do not need a graph."""

from __future__ import annotations

from typing import Any

from stoker._src.base import nest
from stoker._src.base.export import export, export_constant
from stoker._src.formats import gfile, protos, tfrecord

# Messages are exported here because protobuf builds their classes, so they cannot be decorated.
for _name in (
    "BytesList ClusterDef Example Feature FeatureList FeatureLists Features FloatList Int64List JobDef SequenceExample "
    "ServerDef"
).split():
    export_constant(protos.__name__, _name, f"train.{_name}")
export_constant(protos.__name__, "SaverDef", v1="train.SaverDef")
for _name in (
    "AttrValue ConfigProto GPUOptions GraphDef GraphOptions HistogramProto LogMessage MetaGraphDef NameAttrList NodeDef "
    "OptimizerOptions RunMetadata RunOptions SummaryMetadata TensorInfo"
).split():
    export_constant(protos.__name__, _name, v1=_name)
for _name in ("Event", "SessionLog", "Summary"):
    export_constant(protos.__name__, _name, v1=(_name, f"summary.{_name}"))
export_constant(protos.__name__, "SummaryDescription", v1="summary.SummaryDescription")
export_constant(protos.__name__, "TaggedRunMetadata", v1="summary.TaggedRunMetadata")

for _name in ("assert_same_structure", "flatten", "is_nested", "map_structure", "pack_sequence_as"):
    export_constant(nest.__name__, _name, f"nest.{_name}", v1=f"contrib.framework.nest.{_name}")

for _name in (
    "GFile copy exists get_registered_schemes glob isdir join listdir makedirs mkdir remove rename rmtree stat walk"
).split():
    export_constant(gfile.__name__, _name, f"io.gfile.{_name}")
export_constant(gfile.__name__, "GFile", v1=("gfile.GFile", "gfile.Open"))
for _name in (
    "Copy DeleteRecursively Exists Glob IsDirectory ListDirectory MakeDirs MkDir Remove Rename Stat Walk"
).split():
    export_constant(gfile.__name__, _name, v1=f"gfile.{_name}")


@export(v1="gfile.FastGFile")
class FastGFile(gfile.GFile):
    """The 1.x name of a file without locking; the same as GFile."""

    def __init__(self, name: Any, mode: str = "r") -> None:
        super().__init__(name, mode)


for _name in ("TFRecordOptions", "TFRecordWriter"):
    export_constant(tfrecord.__name__, _name, f"io.{_name}", v1=f"python_io.{_name}")
for _name in ("TFRecordCompressionType", "tf_record_iterator"):
    export_constant(tfrecord.__name__, _name, v1=(f"io.{_name}", f"python_io.{_name}"))
