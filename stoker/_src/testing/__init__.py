from stoker._src import ops as ops  # the testing package needs all ops to be defined
