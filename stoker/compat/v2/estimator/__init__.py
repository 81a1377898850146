"""Public names of tf.estimator."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.compat.v2.estimator import experimental as experimental
from stoker.compat.v2.estimator import export as export
from stoker._src.estimator.canned.class_heads import BinaryClassHead as BinaryClassHead
from stoker._src.estimator.canned.class_heads import MultiClassHead as MultiClassHead
from stoker._src.estimator.canned.class_heads import MultiLabelHead as MultiLabelHead
from stoker._src.estimator.canned.heads import Head as Head
from stoker._src.estimator.canned.number_heads import LogisticRegressionHead as LogisticRegressionHead
from stoker._src.estimator.canned.number_heads import MultiHead as MultiHead
from stoker._src.estimator.canned.number_heads import PoissonRegressionHead as PoissonRegressionHead
from stoker._src.estimator.canned.number_heads import RegressionHead as RegressionHead
from stoker._src.estimator.estimator import Estimator as Estimator
from stoker._src.estimator.exporters import BestExporter as BestExporter
from stoker._src.estimator.exporters import Exporter as Exporter
from stoker._src.estimator.exporters import FinalExporter as FinalExporter
from stoker._src.estimator.exporters import LatestExporter as LatestExporter
from stoker._src.estimator.extensions import add_metrics as add_metrics
from stoker._src.estimator.run_config import RunConfig as RunConfig
from stoker._src.estimator.spec import EstimatorSpec as EstimatorSpec
from stoker._src.estimator.spec import ModeKeys as ModeKeys
from stoker._src.estimator.training import EvalSpec as EvalSpec
from stoker._src.estimator.training import train_and_evaluate as train_and_evaluate
from stoker._src.estimator.training import TrainSpec as TrainSpec
from stoker._src.estimator.warm_starting import WarmStartSettings as WarmStartSettings
from stoker._src.feature_column.parse_spec import classifier_parse_example_spec as classifier_parse_example_spec
from stoker._src.feature_column.parse_spec import regressor_parse_example_spec as regressor_parse_example_spec
from stoker._src.train.checkpoints.initializers import VocabInfo as VocabInfo
from stoker._src.train.sessions.basic_hooks import FeedFnHook as FeedFnHook
from stoker._src.train.sessions.basic_hooks import FinalOpsHook as FinalOpsHook
from stoker._src.train.sessions.basic_hooks import GlobalStepWaiterHook as GlobalStepWaiterHook
from stoker._src.train.sessions.basic_hooks import LoggingTensorHook as LoggingTensorHook
from stoker._src.train.sessions.basic_hooks import NanLossDuringTrainingError as NanLossDuringTrainingError
from stoker._src.train.sessions.basic_hooks import NanTensorHook as NanTensorHook
from stoker._src.train.sessions.basic_hooks import ProfilerHook as ProfilerHook
from stoker._src.train.sessions.basic_hooks import StopAtStepHook as StopAtStepHook
from stoker._src.train.sessions.run_hooks import SessionRunArgs as SessionRunArgs
from stoker._src.train.sessions.run_hooks import SessionRunContext as SessionRunContext
from stoker._src.train.sessions.run_hooks import SessionRunHook as SessionRunHook
from stoker._src.train.sessions.run_hooks import SessionRunValues as SessionRunValues
from stoker._src.train.sessions.saving_hooks import CheckpointSaverHook as CheckpointSaverHook
from stoker._src.train.sessions.saving_hooks import CheckpointSaverListener as CheckpointSaverListener
from stoker._src.train.sessions.saving_hooks import StepCounterHook as StepCounterHook
from stoker._src.train.sessions.saving_hooks import SummarySaverHook as SummarySaverHook
from stoker._src.train.sessions.timers import SecondOrStepTimer as SecondOrStepTimer
