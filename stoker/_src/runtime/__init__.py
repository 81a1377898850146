from stoker._src import ops as ops  # the runtime needs all ops to be defined
