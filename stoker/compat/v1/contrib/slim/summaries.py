"""Public names of tf.contrib.slim.summaries."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.contrib.slim.tools import add_histogram_summaries as add_histogram_summaries
from stoker._src.contrib.slim.tools import add_histogram_summary as add_histogram_summary
from stoker._src.contrib.slim.tools import add_image_summaries as add_image_summaries
from stoker._src.contrib.slim.tools import add_image_summary as add_image_summary
from stoker._src.contrib.slim.tools import add_scalar_summaries as add_scalar_summaries
from stoker._src.contrib.slim.tools import add_scalar_summary as add_scalar_summary
from stoker._src.contrib.slim.tools import add_zero_fraction_summaries as add_zero_fraction_summaries
from stoker._src.contrib.slim.tools import add_zero_fraction_summary as add_zero_fraction_summary
