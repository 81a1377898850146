"""Public names of tf.random."""

from stoker._src.ops.nn.sampling import all_candidate_sampler as all_candidate_sampler
from stoker._src.ops.nn.sampling import fixed_unigram_candidate_sampler as fixed_unigram_candidate_sampler
from stoker._src.ops.nn.sampling import log_uniform_candidate_sampler as log_uniform_candidate_sampler
from stoker._src.ops.nn.sampling import uniform_candidate_sampler as uniform_candidate_sampler
from stoker._src.ops.random import random_normal as normal
from stoker._src.ops.random import random_uniform as uniform
from stoker._src.ops.random import set_random_seed as set_seed
from stoker._src.ops.random import truncated_normal as truncated_normal
