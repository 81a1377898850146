"""All protocol messages of the package.

Messages that `tensorboard` ships are imported from there; the others are generated from the .proto files in this folder by
`scripts/protos`. Ours are in the protobuf package `stoker` and tensorboard's in `tensorboard`, so neither conflicts
with TensorFlow's own messages in the same process. The wire format is identical. To convert a message of one package to
the other, pass it as bytes: `Theirs.FromString(ours.SerializeToString())`.

Map entries are nested classes, as in TensorFlow: `Features.FeatureEntry`, `FeatureLists.FeatureListEntry`,
`JobDef.TasksEntry`.
"""

# pyright: reportAttributeAccessIssue=false
# Generated modules build their classes at import, where a type checker cannot see them.

from tensorboard.compat.proto.allocation_description_pb2 import AllocationDescription
from tensorboard.compat.proto.api_def_pb2 import ApiDef, ApiDefs
from tensorboard.compat.proto.attr_value_pb2 import AttrValue, NameAttrList
from tensorboard.compat.proto.cluster_pb2 import ClusterDef, JobDef
from tensorboard.compat.proto.config_pb2 import (
    BatchingOptions,
    CallableOptions,
    ConfigProto,
    GPUOptions,
    GraphOptions,
    OptimizerOptions,
    RunMetadata,
    RunOptions,
    SessionMetadata,
    TensorConnection,
    ThreadPoolOptionProto,
)
from tensorboard.compat.proto.coordination_config_pb2 import CoordinatedJob, CoordinationServiceConfig
from tensorboard.compat.proto.cost_graph_pb2 import CostGraphDef
from tensorboard.compat.proto.debug_pb2 import (
    DebuggedSourceFile,
    DebuggedSourceFiles,
    DebugOptions,
    DebugTensorWatch,
)
from tensorboard.compat.proto.event_pb2 import (
    Event,
    LogMessage,
    RequestedExitCode,
    SessionLog,
    SourceMetadata,
    TaggedRunMetadata,
    WatchdogConfig,
    WorkerHealth,
    WorkerHeartbeatRequest,
    WorkerHeartbeatResponse,
    WorkerShutdownMode,
)
from tensorboard.compat.proto.full_type_pb2 import FullTypeDef, FullTypeId
from tensorboard.compat.proto.function_pb2 import (
    FunctionDef,
    FunctionDefLibrary,
    GradientDef,
    RegisteredGradient,
)
from tensorboard.compat.proto.graph_debug_info_pb2 import GraphDebugInfo
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.compat.proto.histogram_pb2 import HistogramProto
from tensorboard.compat.proto.meta_graph_pb2 import (
    AssetFileDef,
    CollectionDef,
    MetaGraphDef,
    SignatureDef,
    TensorInfo,
)
from tensorboard.compat.proto.node_def_pb2 import NodeDef
from tensorboard.compat.proto.op_def_pb2 import OpDef, OpDeprecation, OpList
from tensorboard.compat.proto.resource_handle_pb2 import ResourceHandleProto
from tensorboard.compat.proto.rewriter_config_pb2 import (
    AutoParallelOptions,
    RewriterConfig,
    ScopedAllocatorOptions,
)
from tensorboard.compat.proto.rpc_options_pb2 import RPCOptions
from tensorboard.compat.proto.saved_object_graph_pb2 import (
    CapturedTensor,
    FunctionSpec,
    SaveableObject,
    SavedAsset,
    SavedBareConcreteFunction,
    SavedConcreteFunction,
    SavedConstant,
    SavedFunction,
    SavedObject,
    SavedObjectGraph,
    SavedResource,
    SavedUserObject,
    SavedVariable,
)
from tensorboard.compat.proto.saver_pb2 import SaverDef
from tensorboard.compat.proto.step_stats_pb2 import (
    AllocationRecord,
    AllocatorMemoryUsed,
    DeviceStepStats,
    MemoryStats,
    NodeExecStats,
    NodeOutput,
    StepStats,
)
from tensorboard.compat.proto.struct_pb2 import (
    BoundedTensorSpecProto,
    DictValue,
    ListValue,
    NamedTupleValue,
    NoneValue,
    PairValue,
    StructuredValue,
    TensorSpecProto,
    TupleValue,
    TypeSpecProto,
)
from tensorboard.compat.proto.summary_pb2 import DataClass, Summary, SummaryDescription, SummaryMetadata
from tensorboard.compat.proto.tensor_description_pb2 import TensorDescription
from tensorboard.compat.proto.tensor_pb2 import TensorProto, VariantTensorDataProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.trackable_object_graph_pb2 import RegisteredSaver, TrackableObjectGraph
from tensorboard.compat.proto.types_pb2 import DataType, SerializedDType
from tensorboard.compat.proto.variable_pb2 import (
    SaveSliceInfoDef,
    VariableAggregation,
    VariableDef,
    VariableSynchronization,
)
from tensorboard.compat.proto.verifier_config_pb2 import VerifierConfig
from tensorboard.compat.proto.versions_pb2 import VersionDef

from stoker._src.formats.protos.checkpoint_pb2 import (
    BundleEntryProto,
    BundleHeaderProto,
    CheckpointState,
    SavedSlice,
    SavedSliceMeta,
    SavedTensorSliceMeta,
    SavedTensorSlices,
    TensorSliceProto,
)
from stoker._src.formats.protos.example_pb2 import (
    BytesList,
    Example,
    Feature,
    FeatureList,
    FeatureLists,
    Features,
    FloatList,
    Int64List,
    SequenceExample,
)
from stoker._src.formats.protos.program_pb2 import (
    ClusterDeviceFilters,
    Code,
    FingerprintDef,
    JobDeviceFilters,
    QueueRunnerDef,
    SavedModel,
    ServerDef,
    TaskDeviceFilters,
)

__all__ = [
    "AllocationDescription",
    "AllocationRecord",
    "AllocatorMemoryUsed",
    "ApiDef",
    "ApiDefs",
    "AssetFileDef",
    "AttrValue",
    "AutoParallelOptions",
    "BatchingOptions",
    "BoundedTensorSpecProto",
    "BundleEntryProto",
    "BundleHeaderProto",
    "BytesList",
    "CallableOptions",
    "CapturedTensor",
    "CheckpointState",
    "ClusterDef",
    "ClusterDeviceFilters",
    "Code",
    "CollectionDef",
    "ConfigProto",
    "CoordinatedJob",
    "CoordinationServiceConfig",
    "CostGraphDef",
    "DataClass",
    "DataType",
    "DebugOptions",
    "DebugTensorWatch",
    "DebuggedSourceFile",
    "DebuggedSourceFiles",
    "DeviceStepStats",
    "DictValue",
    "Event",
    "Example",
    "Feature",
    "FeatureList",
    "FeatureLists",
    "Features",
    "FingerprintDef",
    "FloatList",
    "FullTypeDef",
    "FullTypeId",
    "FunctionDef",
    "FunctionDefLibrary",
    "FunctionSpec",
    "GPUOptions",
    "GradientDef",
    "GraphDebugInfo",
    "GraphDef",
    "GraphOptions",
    "HistogramProto",
    "Int64List",
    "JobDef",
    "JobDeviceFilters",
    "ListValue",
    "LogMessage",
    "MemoryStats",
    "MetaGraphDef",
    "NameAttrList",
    "NamedTupleValue",
    "NodeDef",
    "NodeExecStats",
    "NodeOutput",
    "NoneValue",
    "OpDef",
    "OpDeprecation",
    "OpList",
    "OptimizerOptions",
    "PairValue",
    "QueueRunnerDef",
    "RPCOptions",
    "RegisteredGradient",
    "RegisteredSaver",
    "RequestedExitCode",
    "ResourceHandleProto",
    "RewriterConfig",
    "RunMetadata",
    "RunOptions",
    "SaveSliceInfoDef",
    "SaveableObject",
    "SavedAsset",
    "SavedBareConcreteFunction",
    "SavedConcreteFunction",
    "SavedConstant",
    "SavedFunction",
    "SavedModel",
    "SavedObject",
    "SavedObjectGraph",
    "SavedResource",
    "SavedSlice",
    "SavedSliceMeta",
    "SavedTensorSliceMeta",
    "SavedTensorSlices",
    "SavedUserObject",
    "SavedVariable",
    "SaverDef",
    "ScopedAllocatorOptions",
    "SequenceExample",
    "SerializedDType",
    "ServerDef",
    "SessionLog",
    "SessionMetadata",
    "SignatureDef",
    "SourceMetadata",
    "StepStats",
    "StructuredValue",
    "Summary",
    "SummaryDescription",
    "SummaryMetadata",
    "TaggedRunMetadata",
    "TaskDeviceFilters",
    "TensorConnection",
    "TensorDescription",
    "TensorInfo",
    "TensorProto",
    "TensorShapeProto",
    "TensorSliceProto",
    "TensorSpecProto",
    "ThreadPoolOptionProto",
    "TrackableObjectGraph",
    "TupleValue",
    "TypeSpecProto",
    "VariableAggregation",
    "VariableDef",
    "VariableSynchronization",
    "VariantTensorDataProto",
    "VerifierConfig",
    "VersionDef",
    "WatchdogConfig",
    "WorkerHealth",
    "WorkerHeartbeatRequest",
    "WorkerHeartbeatResponse",
    "WorkerShutdownMode",
]
