"""A composite takes part everywhere by its spec class alone: one is defined here, and used wherever tensors are."""

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf
from stoker._src.graph.type_spec import BatchableTypeSpec, describes

pytestmark = pytest.mark.usefixtures("eager")


class Interval:
    """Numbers from `low` to `high`; `unit` is not a tensor but part of the type."""

    def __init__(self, low, high, unit="m"):
        self.low, self.high, self.unit = low, high, unit

    @property
    def _type_spec(self):
        return IntervalSpec(self.low.shape, self.low.dtype, self.unit)


@describes(Interval)
class IntervalSpec(BatchableTypeSpec):
    """All that is written to add the composite."""

    def __init__(self, shape, dtype=tf.float32, unit="m"):
        self._shape, self._dtype, self._unit = tf.TensorShape(shape), dtype, unit

    @property
    def value_type(self):
        return Interval

    def _serialize(self):
        return self._shape, self._dtype, self._unit

    @property
    def _component_specs(self):
        return {"low": tf.TensorSpec(self._shape, self._dtype), "high": tf.TensorSpec(self._shape, self._dtype)}

    def _to_components(self, value):
        return {"low": value.low, "high": value.high}

    def _from_components(self, components):
        return Interval(components["low"], components["high"], self._unit)

    def _batch(self, batch_size):
        return IntervalSpec(tf.TensorShape([batch_size]).concatenate(self._shape), self._dtype, self._unit)

    def _unbatch(self):
        return IntervalSpec(self._shape[1:], self._dtype, self._unit)

    @classmethod
    def _differentiated(cls, value):
        return [value.low, value.high]

    @classmethod
    def _gradient(cls, value, gradients):
        return Interval(*gradients, value.unit)


def interval(low, high, unit="m"):
    return Interval(tf.constant(low, tf.float32), tf.constant(high, tf.float32), unit)


def wider(value, by=1.0):
    return Interval(value.low - by, value.high + by, value.unit)


def expect(value, low, high, unit="m"):
    assert isinstance(value, Interval)
    assert value.unit == unit
    np.testing.assert_array_equal(np.asarray(value.low), np.float32(low))
    np.testing.assert_array_equal(np.asarray(value.high), np.float32(high))


@pytest.fixture
def graph():
    with tf.Graph().as_default():
        yield


@pytest.fixture(params=["at once", "function"])
def called(request):
    """Calls a function at once, and as a tf.function."""
    return lambda f, *args: (f if request.param == "at once" else tf2.function(f))(*args)


# -- structures --------------------------------------------------------------------------------------------------


def test_spec_of_a_value():
    """type_spec_from_value asks the value for its spec, and the spec knows values of its type."""
    value = interval([1.0, 2.0], [3.0, 4.0])
    spec = tf.type_spec_from_value(value)
    assert spec == IntervalSpec([2])
    assert spec.is_compatible_with(value)
    assert not IntervalSpec([3]).is_compatible_with(value)
    assert not IntervalSpec([2], unit="s").is_compatible_with(value)
    assert spec.most_specific_common_supertype([IntervalSpec([5])]) == IntervalSpec([None])


def test_structures_open_it_when_asked():
    """With expand_composites the components come in the order of their names, and come together again."""
    value = interval(1.0, 2.0, "s")
    assert tf.nest.flatten([value]) == [value]
    assert tf.nest.flatten({"a": value}, expand_composites=True) == [value.high, value.low]
    mapped = tf.nest.map_structure(lambda part: part * 2.0, (value,), expand_composites=True)[0]
    expect(mapped, 2.0, 4.0, "s")
    expect(tf.nest.pack_sequence_as(value, [5.0, 4.0], expand_composites=True), 4.0, 5.0, "s")


def test_specs_open_too():
    """A spec in a structure opens into the specs of the components, and tensors make a value of it."""
    spec = IntervalSpec([2])
    assert tf.nest.flatten(spec, expand_composites=True) == [tf.TensorSpec([2])] * 2
    expect(tf.nest.pack_sequence_as(spec, [[2.0], [1.0]], expand_composites=True), [1.0], [2.0])


def test_structures_with_other_types_differ():
    """Two values are alike whatever their shapes, but not where another part of the type differs."""
    tf.nest.assert_same_structure(interval(1.0, 2.0), interval([1.0], [2.0]), expand_composites=True)
    with pytest.raises(ValueError, match="Incompatible CompositeTensor"):
        tf.nest.assert_same_structure(interval(1.0, 2.0), interval(1.0, 2.0, "s"), expand_composites=True)


class PlainSpec(tf.TypeSpec):
    """As programs write specs for TensorFlow: nothing registers the values."""

    @property
    def value_type(self):
        return complex

    def _serialize(self):
        return ()

    @property
    def _component_specs(self):
        return (tf.TensorSpec([]), [tf.TensorSpec([2])])

    def _to_components(self, value):
        return (value.real, [value.imag])

    def _from_components(self, components):
        return components


def test_specs_of_programs():
    """A TypeSpec of a program opens in structures, and packs components in their own structure."""
    assert tf.nest.flatten([PlainSpec()], expand_composites=True) == [tf.TensorSpec([]), tf.TensorSpec([2])]
    assert tf.nest.flatten([PlainSpec()]) == [PlainSpec()]
    assert tf.nest.pack_sequence_as(PlainSpec(), [1, 2], expand_composites=True) == (1, [2])
    with pytest.raises(TypeError, match="Could not build a TypeSpec"):
        tf.type_spec_from_value(object())


# -- sessions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fed", [Interval(np.float32([1, 2]), np.float32([3, 4])), {"low": [1.0, 2.0], "high": [3.0, 4.0]}]
)
def test_session_feeds_and_fetches(graph, fed):
    """A run takes a value of arrays, or a structure of them, for a composite; a fetch gives a value of arrays."""
    place = Interval(tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [2]))
    with tf.Session() as session:
        for _ in range(2):  # the plan is found again
            made, whole = session.run([wider(place), {"same": place}], {place: fed})
            expect(made, [0.0, 1.0], [4.0, 5.0])
            assert isinstance(made.low, np.ndarray)
            expect(whole["same"], [1.0, 2.0], [3.0, 4.0])


def test_feeds_of_another_form(graph):
    """A value that is neither a composite nor a structure of its components is refused, with both named."""
    place = Interval(tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, []))
    with tf.Session() as session, pytest.raises(TypeError, match=r"A Interval is fed one, or its components.*not 3"):
        session.run(place.low, {place: 3.0})


# -- functions and control flow ------------------------------------------------------------------------------------


def test_function_arguments_and_results():
    """A tf.function takes and returns composites, and is traced again for another type."""
    traces = []

    @tf2.function
    def step(value):
        traces.append(value.unit)
        return wider(value), {"first": value.low}

    made, rest = step(interval([1.0], [2.0]))
    expect(made, [0.0], [3.0])
    np.testing.assert_array_equal(rest["first"], [1.0])
    expect(step(interval([5.0], [6.0]))[0], [4.0], [7.0])
    expect(step(interval([1.0], [2.0], "s"))[0], [0.0], [3.0], "s")
    assert traces == ["m", "s"]


def test_function_signature():
    """An input signature may name the spec, whose unknown sizes fit all values."""
    step = tf2.function(wider, input_signature=[IntervalSpec([None])])
    expect(step(interval([1.0, 2.0], [3.0, 4.0])), [0.0, 1.0], [4.0, 5.0])
    expect(step(interval([1.0], [3.0])), [0.0], [4.0])
    with pytest.raises(TypeError, match="Can not cast"):
        step(interval([1.0], [3.0], "s"))


def test_cond(called):
    """Branches return composites; the branches must return the same type."""

    def choose(flag, value):
        return tf2.cond(flag, lambda: wider(value), lambda: value)

    expect(called(choose, tf.constant(True), interval(1.0, 2.0)), 0.0, 3.0)
    expect(called(choose, tf.constant(False), interval(1.0, 2.0)), 1.0, 2.0)


def test_while_loop(called):
    """Loop variables may be composites."""

    def loop(value):
        return tf2.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, wider(v)), (tf.constant(0), value))[1]

    expect(called(loop, interval(1.0, 2.0)), -2.0, 5.0)


def test_control_flow_of_sessions(graph):
    """In graphs of 1.x cond and while_loop take composites as well."""
    flag, start = tf.placeholder(tf.bool, []), interval(1.0, 2.0)
    chosen = tf.cond(flag, lambda: wider(start), lambda: start)
    looped = tf.while_loop(lambda i, _: i < 2, lambda i, v: (i + 1, wider(v)), (0, chosen))[1]
    with tf.Session() as session:
        expect(session.run(looped, {flag: True}), -2.0, 5.0)


# -- gradients -----------------------------------------------------------------------------------------------------


def test_tape():
    """The gradient with respect to a composite is one of the gradients of its parts; targets may be composites."""
    value = interval([1.0, 2.0], [3.0, 4.0])
    with tf2.GradientTape(persistent=True) as tape:
        tape.watch(value)
        area = tf.reduce_sum(value.low * value.high)
        scaled = Interval(value.low * 2.0, value.high * value.high)
    expect(tape.gradient(area, value), [3.0, 4.0], [1.0, 2.0])
    found = tape.gradient(scaled, {"v": value}, output_gradients=interval([1.0, 1.0], [1.0, 10.0]))["v"]
    expect(found, [2.0, 2.0], [6.0, 80.0])


def test_gradients(graph):
    """tf.gradients takes composites on both sides."""
    value = interval([1.0, 2.0], [3.0, 4.0])
    (of_area,) = tf.gradients(value.low * value.high, value)
    of_both, of_low = tf.gradients(wider(value), [value, value.low], grad_ys=interval([1.0, 2.0], [3.0, 4.0]))
    with tf.Session() as session:
        expect(session.run(of_area), [3.0, 4.0], [1.0, 2.0])
        expect(session.run(of_both), [1.0, 2.0], [3.0, 4.0])
        np.testing.assert_array_equal(session.run(of_low), [1.0, 2.0])


def test_gradients_of_ragged_tensors(graph):
    """A ragged tensor is differentiated by its values, as a source and as a target."""
    ragged = tf.RaggedTensor.from_row_splits(tf.constant([1.0, 2.0, 3.0]), [0, 1, 3])
    (found,) = tf.gradients(ragged.flat_values**2, ragged)
    (of_values,) = tf.gradients(ragged * 3.0, ragged.flat_values)
    with tf.Session() as session:
        assert session.run(found).to_list() == [[2.0], [4.0, 6.0]]
        np.testing.assert_array_equal(session.run(of_values), [3.0, 3.0, 3.0])


def test_gradients_of_what_has_none(graph):
    """A composite whose spec says nothing of gradients is refused as TensorFlow refuses it."""
    optional = tf2.experimental.Optional.from_value(tf.constant(1.0))
    with pytest.raises(ValueError, match="Type Optional is not supported as a gradient source or gradient target"):
        tf.gradients(tf.constant(1.0), optional)


# -- rows ----------------------------------------------------------------------------------------------------------


def test_map_fn(called):
    """map_fn goes over the rows of a composite and stacks composites."""
    value = interval([1.0, 2.0, 3.0], [5.0, 7.0, 9.0])
    expect(called(lambda v: tf2.map_fn(wider, v), value), [0.0, 1.0, 2.0], [6.0, 8.0, 10.0])
    lengths = called(lambda v: tf2.map_fn(lambda row: row.high - row.low, v, fn_output_signature=tf.float32), value)
    np.testing.assert_array_equal(lengths, [4.0, 5.0, 6.0])
    around = called(
        lambda x: tf2.map_fn(lambda row: Interval(row - 1.0, row + 1.0), x, fn_output_signature=IntervalSpec([])),
        tf.constant([1.0, 2.0]),
    )
    expect(around, [0.0, 1.0], [2.0, 3.0])


def test_map_fn_of_unknown_length(graph):
    """The number of rows may be known only when the graph runs."""
    place = Interval(tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None]))
    mapped = tf.map_fn(wider, place)
    folded = tf.foldl(lambda total, row: total + row.high - row.low, place, initializer=tf.constant(0.0))
    with tf.Session() as session:
        made, total = session.run([mapped, folded], {place: {"low": [1.0, 2.0], "high": [3.0, 5.0]}})
    expect(made, [0.0, 1.0], [4.0, 6.0])
    assert total == 5.0


def test_vectorized_map():
    """vectorized_map finds the type of composites by itself."""
    expect(tf2.vectorized_map(wider, interval([1.0, 2.0], [3.0, 4.0])), [0.0, 1.0], [4.0, 5.0])


def test_rows_that_are_not_there(graph):
    """What has no rows can neither be gone over nor be stacked, in TensorFlow's words."""
    with pytest.raises(TypeError, match="map_fn can not generate OptionalSpec"):
        tf.map_fn(tf2.experimental.Optional.from_value, tf.constant([1.0]), tf.OptionalSpec(tf.TensorSpec([])))
    with pytest.raises(TypeError, match=r"fn_output_signature says IntervalSpec.* but fn returned"):
        tf.map_fn(lambda row: row, tf.constant([1.0]), IntervalSpec([]))
