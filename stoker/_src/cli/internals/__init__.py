"""What TensorFlow's internal modules hold beyond the public API, for programs that import them under `stoker run`.

One module here serves several of TensorFlow's; `tables.py` says which.
"""
