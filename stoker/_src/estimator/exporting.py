"""SavedModels of Estimators: one graph for each mode, with the signatures of its outputs."""

from __future__ import annotations

import os
import time
from typing import Any

from stoker._src.base import tf_logging
from stoker._src.estimator.export_outputs import (
    SUPERVISED_EVAL_METHOD,
    SUPERVISED_TRAIN_METHOD,
    SupervisedOutput,
)
from stoker._src.estimator.receivers import ServingInputReceiver, TensorServingInputReceiver
from stoker._src.estimator.spec import ModeKeys
from stoker._src.formats import gfile
from stoker._src.graph.graph import Graph
from stoker._src.graph.keys import GraphKeys
from stoker._src.ops.random.uniform_normal import set_random_seed
from stoker._src.runtime.session import Session
from stoker._src.saved_model.builder import SavedModelBuilder
from stoker._src.saved_model.constants import (
    CLASSIFY_METHOD_NAME,
    DEFAULT_SERVING_SIGNATURE_DEF_KEY,
    PREDICT_METHOD_NAME,
    REGRESS_METHOD_NAME,
)
from stoker._src.saved_model.signatures import is_valid_signature
from stoker._src.train.checkpoints.saver import Saver
from stoker._src.train.sessions.scaffold import Scaffold
from stoker._src.train.training_util import create_global_step

TAGS = {ModeKeys.PREDICT: ["serve"], ModeKeys.TRAIN: ["train"], ModeKeys.EVAL: ["eval"]}
_METHODS = {
    "Classify": CLASSIFY_METHOD_NAME,
    "Regress": REGRESS_METHOD_NAME,
    "Predict": PREDICT_METHOD_NAME,
    "Train": SUPERVISED_TRAIN_METHOD,
    "Eval": SUPERVISED_EVAL_METHOD,
}


def export_all(
    estimator: Any,
    base: str,
    receivers: dict[str, Any],
    assets_extra: Any,
    as_text: bool,
    checkpoint_path: str,
    strip_default_attrs: bool,
) -> bytes:
    """Writes a SavedModel with the graphs of all modes in `receivers` to a directory below `base` that is named by the time.

    The directory appears when the model is complete.

    Raises:
        ValueError: there is no mode, or an unknown one.
    """
    modes = [mode for mode in (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT) if receivers.get(mode)]
    if not modes:
        raise ValueError(f"No valid modes for exporting found. Got {list(receivers)}.")
    final = timestamped_directory(base)
    temporary = os.path.join(base, f"temp-{os.path.basename(final)}")
    builder = SavedModelBuilder(temporary)
    for position, mode in enumerate(modes):
        _add_mode(estimator, builder, mode, receivers[mode], checkpoint_path, strip_default_attrs, position == 0)
    builder.save(as_text)
    for name, source in (assets_extra or {}).items():
        target = os.path.join(temporary, "assets.extra", name)
        gfile.makedirs(os.path.dirname(target))
        gfile.copy(source, target)
    gfile.rename(temporary, final)
    return os.fsencode(final)


def timestamped_directory(base: str) -> str:
    """Returns a directory below `base` that does not exist. Its name is the time in seconds, or the next second that is free."""
    stamp = int(time.time())
    while gfile.exists(os.path.join(base, str(stamp))) or gfile.exists(os.path.join(base, f"temp-{stamp}")):
        stamp += 1
    return os.path.join(base, str(stamp))


def _add_mode(
    estimator: Any,
    builder: SavedModelBuilder,
    mode: str,
    receiver_fn: Any,
    checkpoint_path: str,
    strip_default_attrs: bool,
    with_variables: bool,
) -> None:
    with Graph().as_default() as graph:
        create_global_step()
        set_random_seed(estimator.config.tf_random_seed)
        receiver = receiver_fn()
        spec = estimator._call_model_fn(receiver.features, getattr(receiver, "labels", None), mode, estimator.config)
        outputs = _outputs(spec, mode)
        signatures = _signatures(receiver, outputs, mode)
        with Session(config=estimator._session_config) as session:
            local_init_op = spec.scaffold.local_init_op
            if local_init_op is None:
                local_init_op = Scaffold.default_local_init_op()
            # A saver without keeping rules: the model has one checkpoint.
            saver = spec.scaffold.saver or Saver(sharded=True)
            if with_variables:
                saver.restore(session, checkpoint_path)
            arguments: dict[str, Any] = {
                "tags": TAGS[mode],
                "signature_def_map": signatures,
                "assets_collection": graph.get_collection(GraphKeys.ASSET_FILEPATHS),
                "main_op": local_init_op,
                "strip_default_attrs": strip_default_attrs,
                "saver": saver,
            }
            if mode == ModeKeys.TRAIN and spec.train_op is not None:
                graph.add_to_collection(GraphKeys.TRAIN_OP, spec.train_op)
            if with_variables:
                builder.add_meta_graph_and_variables(session, **arguments)
            else:
                builder.add_meta_graph(**arguments)


def _outputs(spec: Any, mode: str) -> dict[str, Any]:
    """Returns the outputs of a mode by name.

    Raises:
        ValueError: a model for serving has none.
    """
    if mode == ModeKeys.PREDICT:
        if not spec.export_outputs:
            raise ValueError("export_outputs must be defined in EstimatorSpec for mode PREDICT.")
        return spec.export_outputs
    method = SUPERVISED_TRAIN_METHOD if mode == ModeKeys.TRAIN else SUPERVISED_EVAL_METHOD
    return {mode: SupervisedOutput(method, spec.loss, spec.predictions, spec.eval_metric_ops)}


def _signatures(receiver: Any, outputs: dict[str, Any], mode: str) -> dict[str, Any]:
    """Returns the signatures for all outputs that the receiver's tensors can serve, and logs which ones those are."""
    sets: dict[str | None, Any] = {None: receiver.receiver_tensors}
    if isinstance(receiver, (ServingInputReceiver, TensorServingInputReceiver)):
        sets.update(receiver.receiver_tensors_alternatives or {})
    signatures: dict[str, Any] = {}
    excluded: dict[str, str] = {}
    for set_name, tensors in sets.items():
        for name, output in outputs.items():
            name = name or "None"
            full = name if set_name is None else f"{set_name}:{name}"
            try:
                signature = output.as_signature_def(tensors)
            except ValueError as error:
                excluded[full] = str(error)
                continue
            signatures[full] = signature
    valid = {
        name: signature
        for name, signature in signatures.items()
        if mode != ModeKeys.PREDICT or is_valid_signature(signature)
    }
    _log(valid, excluded, mode)
    return valid


def _log(signatures: dict[str, Any], excluded: dict[str, str], mode: str) -> None:
    for label, method in _METHODS.items():
        names = [name for name, signature in signatures.items() if signature.method_name == method]
        tf_logging.info("Signatures INCLUDED in export for %s: %s", label, names or None)
    if excluded:
        tf_logging.info("Signatures EXCLUDED from export because they cannot be be served via TensorFlow Serving APIs:")
        for name, reason in excluded.items():
            tf_logging.info("'%s' : %s", name, reason)
    if not signatures:
        tf_logging.warning("Export includes no signatures!")
    elif mode == ModeKeys.PREDICT and DEFAULT_SERVING_SIGNATURE_DEF_KEY not in signatures:
        tf_logging.warning("Export includes no default signature!")
