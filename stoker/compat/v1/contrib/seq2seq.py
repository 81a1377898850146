"""Public names of tf.contrib.seq2seq."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.contrib.seq2seq.beam_search import BeamSearchDecoder as BeamSearchDecoder
from stoker._src.contrib.seq2seq.beam_search import BeamSearchDecoderOutput as BeamSearchDecoderOutput
from stoker._src.contrib.seq2seq.beam_search import BeamSearchDecoderState as BeamSearchDecoderState
from stoker._src.contrib.seq2seq.beam_search import FinalBeamSearchDecoderOutput as FinalBeamSearchDecoderOutput
from stoker._src.contrib.seq2seq.beam_search import gather_tree as gather_tree
from stoker._src.contrib.seq2seq.beam_search import tile_batch as tile_batch
from stoker._src.contrib.seq2seq.decoding import BasicDecoder as BasicDecoder
from stoker._src.contrib.seq2seq.decoding import BasicDecoderOutput as BasicDecoderOutput
from stoker._src.contrib.seq2seq.decoding import Decoder as Decoder
from stoker._src.contrib.seq2seq.decoding import dynamic_decode as dynamic_decode
from stoker._src.contrib.seq2seq.helpers import CustomHelper as CustomHelper
from stoker._src.contrib.seq2seq.helpers import GreedyEmbeddingHelper as GreedyEmbeddingHelper
from stoker._src.contrib.seq2seq.helpers import Helper as Helper
from stoker._src.contrib.seq2seq.helpers import InferenceHelper as InferenceHelper
from stoker._src.contrib.seq2seq.helpers import SampleEmbeddingHelper as SampleEmbeddingHelper
from stoker._src.contrib.seq2seq.helpers import ScheduledEmbeddingTrainingHelper as ScheduledEmbeddingTrainingHelper
from stoker._src.contrib.seq2seq.helpers import ScheduledOutputTrainingHelper as ScheduledOutputTrainingHelper
from stoker._src.contrib.seq2seq.helpers import TrainingHelper as TrainingHelper
from stoker._src.contrib.seq2seq.losses import sequence_loss as sequence_loss
from stoker._src.contrib.seq2seq.mechanisms import AttentionMechanism as AttentionMechanism
from stoker._src.contrib.seq2seq.mechanisms import BahdanauAttention as BahdanauAttention
from stoker._src.contrib.seq2seq.mechanisms import BahdanauMonotonicAttention as BahdanauMonotonicAttention
from stoker._src.contrib.seq2seq.mechanisms import LuongAttention as LuongAttention
from stoker._src.contrib.seq2seq.mechanisms import LuongMonotonicAttention as LuongMonotonicAttention
from stoker._src.contrib.seq2seq.monotonic import hardmax as hardmax
from stoker._src.contrib.seq2seq.monotonic import monotonic_attention as monotonic_attention
from stoker._src.contrib.seq2seq.monotonic import safe_cumprod as safe_cumprod
from stoker._src.contrib.seq2seq.wrapper import AttentionWrapper as AttentionWrapper
from stoker._src.contrib.seq2seq.wrapper import AttentionWrapperState as AttentionWrapperState
