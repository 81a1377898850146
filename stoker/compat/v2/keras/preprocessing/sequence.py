"""Public names of tf.keras.preprocessing.sequence."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.keras.preprocessing.sequence import make_sampling_table as make_sampling_table
from stoker._src.keras.preprocessing.sequence import pad_sequences as pad_sequences
from stoker._src.keras.preprocessing.sequence import skipgrams as skipgrams
from stoker._src.keras.preprocessing.sequence import TimeseriesGenerator as TimeseriesGenerator
