from stoker._src import ops as ops  # the train package needs all ops to be defined
