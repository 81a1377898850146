"""Public names of tf.contrib."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.compat.v1.contrib import autograph as autograph
from stoker.compat.v1.contrib import checkpoint as checkpoint
from stoker.compat.v1.contrib import cluster_resolver as cluster_resolver
from stoker.compat.v1.contrib import crf as crf
from stoker.compat.v1.contrib import cudnn_rnn as cudnn_rnn
from stoker.compat.v1.contrib import data as data
from stoker.compat.v1.contrib import distribute as distribute
from stoker.compat.v1.contrib import distributions as distributions
from stoker.compat.v1.contrib import eager as eager
from stoker.compat.v1.contrib import estimator as estimator
from stoker.compat.v1.contrib import feature_column as feature_column
from stoker.compat.v1.contrib import framework as framework
from stoker.compat.v1.contrib import image as image
from stoker.compat.v1.contrib import layers as layers
from stoker.compat.v1.contrib import learn as learn
from stoker.compat.v1.contrib import legacy_seq2seq as legacy_seq2seq
from stoker.compat.v1.contrib import lookup as lookup
from stoker.compat.v1.contrib import losses as losses
from stoker.compat.v1.contrib import metrics as metrics
from stoker.compat.v1.contrib import nn as nn
from stoker.compat.v1.contrib import opt as opt
from stoker.compat.v1.contrib import predictor as predictor
from stoker.compat.v1.contrib import rnn as rnn
from stoker.compat.v1.contrib import seq2seq as seq2seq
from stoker.compat.v1.contrib import signal as signal
from stoker.compat.v1.contrib import slim as slim
from stoker.compat.v1.contrib import staging as staging
from stoker.compat.v1.contrib import stateless as stateless
from stoker.compat.v1.contrib import summary as summary
from stoker.compat.v1.contrib import tensorboard as tensorboard
from stoker.compat.v1.contrib import tpu as tpu
from stoker.compat.v1.contrib import training as training
from stoker.compat.v1.contrib import util as util
