"""Names of TensorFlow's internal modules beyond the public API, for programs that import them under `stoker run`.

One module here serves several of TensorFlow's; `tables.py` has the mapping.
"""
