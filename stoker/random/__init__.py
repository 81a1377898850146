"""Public names of tf.random."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.random import experimental as experimental
from stoker._src.ops.random.candidate_sampling import all_candidate_sampler as all_candidate_sampler
from stoker._src.ops.random.candidate_sampling import fixed_unigram_candidate_sampler as fixed_unigram_candidate_sampler
from stoker._src.ops.random.candidate_sampling import learned_unigram_candidate_sampler as learned_unigram_candidate_sampler
from stoker._src.ops.random.candidate_sampling import log_uniform_candidate_sampler as log_uniform_candidate_sampler
from stoker._src.ops.random.candidate_sampling import uniform_candidate_sampler as uniform_candidate_sampler
from stoker._src.ops.random.sampling import categorical as categorical
from stoker._src.ops.random.sampling import random_gamma as gamma
from stoker._src.ops.random.sampling import random_poisson_v2 as poisson
from stoker._src.ops.random.sampling import random_shuffle as shuffle
from stoker._src.ops.random.stateless_random import Algorithm as Algorithm
from stoker._src.ops.random.stateless_random import fold_in as fold_in
from stoker._src.ops.random.stateless_random import split as split
from stoker._src.ops.random.stateless_random import stateless_binomial as stateless_binomial
from stoker._src.ops.random.stateless_random import stateless_categorical as stateless_categorical
from stoker._src.ops.random.stateless_random import stateless_gamma as stateless_gamma
from stoker._src.ops.random.stateless_random import stateless_normal as stateless_normal
from stoker._src.ops.random.stateless_random import stateless_parameterized_truncated_normal as stateless_parameterized_truncated_normal
from stoker._src.ops.random.stateless_random import stateless_poisson as stateless_poisson
from stoker._src.ops.random.stateless_random import stateless_truncated_normal as stateless_truncated_normal
from stoker._src.ops.random.stateless_random import stateless_uniform as stateless_uniform
from stoker._src.ops.random.uniform_normal import random_normal as normal
from stoker._src.ops.random.uniform_normal import random_uniform as uniform
from stoker._src.ops.random.uniform_normal import set_random_seed as set_seed
from stoker._src.ops.random.uniform_normal import truncated_normal as truncated_normal
from stoker._src.ops.variables.random_generator import create_rng_state as create_rng_state
from stoker._src.ops.variables.random_generator import Generator as Generator
from stoker._src.ops.variables.random_generator import get_global_generator as get_global_generator
from stoker._src.ops.variables.random_generator import set_global_generator as set_global_generator
