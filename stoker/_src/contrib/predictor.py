"""`tf.contrib.predictor`: a model as a function from arrays to arrays, with a session of its own."""

from __future__ import annotations

from typing import Any

from stoker._src.base.export import export
from stoker._src.graph.graph import Graph
from stoker._src.runtime.session import Session
from stoker._src.saved_model import constants, loader
from stoker._src.train.checkpoints import state
from stoker._src.train.sessions import monitored


class Predictor:
    """Calls a graph: `predictor({name: array})` returns {name: array}.

    Attributes:
        graph, session: where it runs.
        feed_tensors, fetch_tensors: {name: tensor}.
    """

    def __init__(self, graph: Graph, session: Any, feed_tensors: dict[str, Any], fetch_tensors: dict[str, Any]) -> None:
        self._graph, self._session = graph, session
        self._feed_tensors, self._fetch_tensors = feed_tensors, fetch_tensors

    @property
    def graph(self) -> Graph:
        return self._graph

    @property
    def session(self) -> Any:
        return self._session

    @property
    def feed_tensors(self) -> dict[str, Any]:
        return self._feed_tensors

    @property
    def fetch_tensors(self) -> dict[str, Any]:
        return self._fetch_tensors

    def __repr__(self) -> str:
        return f"Predictor with feed tensors {self._feed_tensors} and fetch_tensors {self._fetch_tensors}"

    def __call__(self, input_dict: dict[str, Any]) -> dict[str, Any]:
        """Runs the graph on the inputs.

        Raises:
            ValueError: an input is not one of `feed_tensors`.
        """
        unknown = set(input_dict) - set(self._feed_tensors)
        if unknown:
            raise ValueError(f"Got unexpected keys in input_dict: {unknown}\nexpected: {set(self._feed_tensors)}")
        feeds = {self._feed_tensors[name]: value for name, value in input_dict.items()}
        return self._session.run(self._fetch_tensors, feeds)


@export(v1="contrib.predictor.from_saved_model")
def from_saved_model(
    export_dir: Any,
    signature_def_key: str | None = None,
    signature_def: Any = None,
    input_names: dict[str, str] | None = None,
    output_names: dict[str, str] | None = None,
    tags: str | None = None,
    graph: Graph | None = None,
    config: Any = None,
) -> Predictor:
    """Loads a SavedModel as a function.

    Args:
        export_dir: its folder.
        signature_def_key: which of its signatures to call; `serving_default` if nothing else is given.
        signature_def: a SignatureDef to call instead.
        input_names, output_names: {name: name of a tensor}, instead of a signature.
        tags: the tags of the meta graph, separated by commas; "serve" if None.
        graph: where the model is loaded to; a new graph if None.
        config: a ConfigProto for the session.

    Raises:
        ValueError: more than one of signature_def_key, signature_def and names is given, or there is no such signature.
    """
    ways = (signature_def_key is not None, signature_def is not None, input_names is not None)
    if sum(ways) > 1 or (input_names is None) != (output_names is None):
        raise ValueError(
            "You must specify at most one of signature_def_key OR signature_def OR (input_names AND output_names)."
        )
    graph = graph or Graph()
    with graph.as_default():
        session = Session(config=config, graph=graph)
        chosen = tags.split(",") if tags else [constants.SERVING]
        meta_graph = loader.load_into(session, chosen, export_dir)
    if input_names is not None and output_names is not None:
        names = (input_names, output_names)
    else:
        if signature_def is None:
            key = signature_def_key or constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
            if key not in meta_graph.signature_def:
                known = "\n".join(sorted(meta_graph.signature_def))
                raise ValueError(f'Got signature_def_key "{key}". Available signatures are {known}.')
            signature_def = meta_graph.signature_def[key]
        names = tuple({k: v.name for k, v in part.items()} for part in (signature_def.inputs, signature_def.outputs))
    feeds, fetches = ({k: graph.get_tensor_by_name(v) for k, v in part.items()} for part in names)
    return Predictor(graph, session, feeds, fetches)


@export(v1="contrib.predictor.from_estimator")
def from_estimator(
    estimator: Any,
    serving_input_receiver_fn: Any,
    output_key: str | None = None,
    graph: Graph | None = None,
    config: Any = None,
) -> Predictor:
    """Makes a function of an Estimator's latest checkpoint.

    Args:
        estimator: a `tf.estimator.Estimator` that has been trained.
        serving_input_receiver_fn: a function that returns a ServingInputReceiver.
        output_key: which of the `export_outputs` to return; `serving_default`, or the only one, if None.
        graph: where the model is built; a new graph if None.
        config: a ConfigProto for the session.

    Raises:
        ValueError: there is no checkpoint, or no such output.
    """
    graph = graph or Graph()
    with graph.as_default():
        receiver = serving_input_receiver_fn()
        spec = estimator._call_model_fn(receiver.features, None, "infer", estimator.config)
        outputs = spec.export_outputs or {}
        if output_key is None:
            output_key = next(iter(outputs)) if len(outputs) == 1 else constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
        if output_key not in outputs:
            raise ValueError(f"output_key {output_key!r} is not in export_outputs; available are {sorted(outputs)}")
        receivers = receiver.receiver_tensors
        signature = outputs[output_key].as_signature_def(receivers)
        path = state.latest_checkpoint(estimator.model_dir)
        if path is None:
            raise ValueError(f"Couldn't find trained model at {estimator.model_dir}.")
        creator = monitored.ChiefSessionCreator(
            config=config, checkpoint_filename_with_path=path, scaffold=spec.scaffold
        )
        session = monitored.MonitoredSession(session_creator=creator)
    fetches = {name: graph.get_tensor_by_name(info.name) for name, info in signature.outputs.items()}
    return Predictor(graph, session, dict(receivers), fetches)
