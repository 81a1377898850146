"""Public names of tf.summary."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.contrib.summary import all_v2_summary_ops as all_v2_summary_ops
from stoker._src.contrib.summary import initialize as initialize
from stoker._src.formats.protos import Event as Event
from stoker._src.formats.protos import SessionLog as SessionLog
from stoker._src.formats.protos import Summary as Summary
from stoker._src.formats.protos import SummaryDescription as SummaryDescription
from stoker._src.formats.protos import TaggedRunMetadata as TaggedRunMetadata
from stoker._src.ops.summary.summary_ops import audio_summary as audio
from stoker._src.ops.summary.summary_ops import get_summary_description as get_summary_description
from stoker._src.ops.summary.summary_ops import histogram_summary as histogram
from stoker._src.ops.summary.summary_ops import image_summary as image
from stoker._src.ops.summary.summary_ops import merge as merge
from stoker._src.ops.summary.summary_ops import merge_all as merge_all
from stoker._src.ops.summary.summary_ops import scalar_summary as scalar
from stoker._src.ops.summary.summary_ops import tensor_summary as tensor_summary
from stoker._src.ops.summary.summary_ops import text_summary as text
from stoker._src.summary.file_writer import FileWriter as FileWriter
from stoker._src.summary.file_writer import FileWriterCache as FileWriterCache
