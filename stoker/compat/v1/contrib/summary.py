"""Public names of tf.contrib.summary."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.contrib.summary import all_v2_summary_ops as all_summary_ops
from stoker._src.contrib.summary import always_record_summaries as always_record_summaries
from stoker._src.contrib.summary import audio as audio
from stoker._src.contrib.summary import create_db_writer as create_db_writer
from stoker._src.contrib.summary import create_file_writer as create_file_writer
from stoker._src.contrib.summary import create_summary_file_writer as create_summary_file_writer
from stoker._src.contrib.summary import eval_dir as eval_dir
from stoker._src.contrib.summary import generic as generic
from stoker._src.contrib.summary import histogram as histogram
from stoker._src.contrib.summary import image as image
from stoker._src.contrib.summary import import_event as import_event
from stoker._src.contrib.summary import initialize as initialize
from stoker._src.contrib.summary import never_record_summaries as never_record_summaries
from stoker._src.contrib.summary import record_summaries_every_n_global_steps as record_summaries_every_n_global_steps
from stoker._src.contrib.summary import scalar as scalar
from stoker._src.contrib.summary import should_record_summaries as should_record_summaries
from stoker._src.contrib.summary import summary_writer_initializer_op as summary_writer_initializer_op
from stoker._src.contrib.summary import write_graph as graph
from stoker._src.summary.writers import flush as flush
from stoker._src.summary.writers import SummaryWriter as SummaryWriter
