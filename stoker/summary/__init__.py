"""Public names of tf.summary."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.summary import experimental as experimental
from stoker._src.summary.recording import audio as audio
from stoker._src.summary.recording import graph as graph
from stoker._src.summary.recording import histogram as histogram
from stoker._src.summary.recording import image as image
from stoker._src.summary.recording import scalar as scalar
from stoker._src.summary.recording import text as text
from stoker._src.summary.recording import trace_export as trace_export
from stoker._src.summary.recording import trace_off as trace_off
from stoker._src.summary.recording import trace_on as trace_on
from stoker._src.summary.recording import write as write
from stoker._src.summary.writers import create_file_writer as create_file_writer
from stoker._src.summary.writers import create_noop_writer as create_noop_writer
from stoker._src.summary.writers import flush as flush
from stoker._src.summary.writers import record_if as record_if
from stoker._src.summary.writers import should_record_summaries as should_record_summaries
from stoker._src.summary.writers import SummaryWriter as SummaryWriter
