from stoker._src import ops as ops  # what is here needs all of them
