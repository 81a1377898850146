"""Expressions over a `nest` module, evaluated alike under TensorFlow and under stoker.

Runs on Python 3.7 (TensorFlow 1.15) too, so it keeps to plain syntax.
"""

import collections
import types

import numpy as np

Point = collections.namedtuple("Point", ["x", "y"])
OtherPoint = collections.namedtuple("Point", ["x", "y"])
Pair = collections.namedtuple("Pair", ["x", "y"])


class SubPoint(Point):
    """A namedtuple subclass."""


class MyList(list):
    """A list subclass."""


class MyTuple(tuple):
    """A tuple subclass that is not a namedtuple."""


class MyDict(dict):
    """A dict subclass."""


class MyMapping(collections.abc.Mapping):
    """A Mapping that is not a dict."""

    def __init__(self, items=()):
        self._items = dict(items)

    def __getitem__(self, key):
        return self._items[key]

    def __iter__(self):
        return iter(self._items)

    def __len__(self):
        return len(self._items)

    def __repr__(self):
        return f"MyMapping({sorted(self._items.items())!r})"


class MySequence(collections.abc.Sequence):
    """A Sequence that is neither list nor tuple."""

    def __init__(self, items=()):
        self._items = list(items)

    def __getitem__(self, index):
        return self._items[index]

    def __len__(self):
        return len(self._items)

    def __repr__(self):
        return f"MySequence({self._items!r})"


class TaggedDict(dict):
    """A dict whose constructor wants more than its items."""

    def __init__(self, tag, items=()):
        super().__init__(items)
        self.tag = tag


class TaggedList(list):
    """A list whose constructor wants more than its items."""

    def __init__(self, tag, items=()):
        super().__init__(items)
        self.tag = tag


class EmptyMapping(collections.abc.MutableMapping):
    """A MutableMapping whose constructor takes nothing."""

    def __init__(self):
        self._items = {}

    def __getitem__(self, key):
        return self._items[key]

    def __setitem__(self, key, value):
        self._items[key] = value

    def __delitem__(self, key):
        del self._items[key]

    def __iter__(self):
        return iter(self._items)

    def __len__(self):
        return len(self._items)

    def __repr__(self):
        return f"EmptyMapping({sorted(self._items.items())!r})"


def empty_mapping(**items):
    mapping = EmptyMapping()
    mapping.update(items)
    return mapping


class _Field:
    def __init__(self, name):
        self.name = name


class Attrs:
    """What `attr.s` leaves behind: `__attrs_attrs__` and an __init__ taking the fields in order."""

    __attrs_attrs__ = (_Field("b"), _Field("a"))

    def __init__(self, b, a):
        self.b = b
        self.a = a

    def __repr__(self):
        return f"Attrs(b={self.b!r}, a={self.a!r})"


class Protocol:
    """A type with TensorFlow 2's flatten protocol."""

    def __init__(self, tag, x, y):
        self.tag, self.x, self.y = tag, x, y

    def __tf_flatten__(self):
        return (self.tag,), (self.x, self.y)

    @classmethod
    def __tf_unflatten__(cls, metadata, components):
        return cls(metadata[0], components[0], components[1])

    def __repr__(self):
        return f"Protocol({self.tag!r}, {self.x!r}, {self.y!r})"


OD = collections.OrderedDict
DD = collections.defaultdict
NAMES = {"np": np, "types": types, "collections": collections}
NAMES.update({k: v for k, v in globals().items() if not k.startswith("_")})


def counter():
    counts = DD(int)
    counts["b"] = 2
    counts["a"] = 1
    return counts


NAMES["counter"] = counter

CASES = """
flatten(3)
flatten(None)
flatten('abc')
flatten(b'abc')
flatten([])
flatten(())
flatten({})
flatten([1, (2, [3, {'b': 5, 'a': 4}]), 6])
flatten({'b': 1, 'a': [2, 3]})
flatten(OD([('b', 1), ('a', 2)]))
flatten(counter())
flatten(MyMapping({'z': 1, 'c': (2, 3)}))
flatten(MySequence([1, 2]))
flatten(MyList([1, [2]]))
flatten(MyTuple((1, 2)))
flatten(Point(1, Point(2, 3)))
flatten({1: 'a', 'b': 2})
flatten({'k': {1: 'a', 'b': 2}})
flatten([np.zeros(2)])
flatten(np.zeros((2, 2)))
flatten({1, 2})
flatten(range(3))
flatten({'a': 1}.keys())
flatten({'a': 1}.values())
flatten({'a': 1}.items())
flatten(iter([1]))
flatten(bytearray(b'ab'))
flatten(collections.deque([1, 2]))
flatten(collections.UserList([1, 2]))
flatten(collections.UserDict({'b': 1, 'a': 2}))
flatten(types.MappingProxyType({'b': 1, 'a': 2}))
flatten(Attrs(1, [2, 3]))
flatten(Protocol('t', 1, [2, 3]))
flatten(memoryview(b'ab'))
flatten([1, 2], expand_composites=True)
flatten((1, None, {}))
flatten({(1, 2): 3, (1, 1): 4})
flatten({b'a': 1, b'B': 2})
flatten({None: 1})
flatten({None: 1, 'a': 2})
is_nested(1)
is_nested('a')
is_nested(b'a')
is_nested([])
is_nested(())
is_nested({})
is_nested({1})
is_nested(range(2))
is_nested(MyMapping())
is_nested(MySequence())
is_nested({'a': 1}.keys())
is_nested({'a': 1}.values())
is_nested({'a': 1}.items())
is_nested(np.zeros(2))
is_nested(Attrs(1, 2))
is_nested(Protocol('t', 1, 2))
is_nested(bytearray(b'a'))
is_nested(collections.deque())
is_nested(None)
is_nested(Point)
is_sequence_or_composite([1])
is_sequence_or_composite(1)
pack_sequence_as(1, [2])
pack_sequence_as('a', [2])
pack_sequence_as(1, 2)
pack_sequence_as([1], 2)
pack_sequence_as(1, [])
pack_sequence_as(1, [2, 3])
pack_sequence_as([], [])
pack_sequence_as([], [1])
pack_sequence_as([1, 2], [1])
pack_sequence_as([1, 2], [1, 2, 3])
pack_sequence_as([1, 2], (3, 4))
pack_sequence_as([1, 2], iter([3, 4]))
pack_sequence_as([1, 2], range(2))
pack_sequence_as([1, 2], 'ab')
pack_sequence_as('a', 'b')
pack_sequence_as([1, 2], {'a': 1, 'b': 2})
pack_sequence_as([1, 2], np.arange(2))
pack_sequence_as([1, (2, [3, {'b': 5, 'a': 4}]), 6], [10, 20, 30, 40, 50, 60])
pack_sequence_as(OD([('b', 1), ('a', 2)]), [3, 4])
pack_sequence_as({'b': 1, 'a': 2}, [3, 4])
pack_sequence_as(counter(), [3, 4])
pack_sequence_as(MyMapping({'b': 1, 'a': 2}), [3, 4])
pack_sequence_as(types.MappingProxyType({'b': 1, 'a': 2}), [3, 4])
pack_sequence_as(collections.UserDict({'b': 1, 'a': 2}), [3, 4])
pack_sequence_as(MyDict({'b': 1, 'a': 2}), [3, 4])
type(pack_sequence_as(MyDict({'b': 1, 'a': 2}), [3, 4])).__name__
pack_sequence_as(MySequence([1, 2]), [3, 4])
type(pack_sequence_as(MyList([1, 2]), [3, 4])).__name__
type(pack_sequence_as(MyTuple([1, 2]), [3, 4])).__name__
pack_sequence_as(Point(1, [2]), [3, 4])
pack_sequence_as(SubPoint(1, [2]), [3, 4])
pack_sequence_as(Attrs(1, [2, 3]), [4, 5, 6])
pack_sequence_as(Protocol('t', 1, [2, 3]), [4, 5, 6])
pack_sequence_as({1: 'a', 'b': 2}, [1, 2])
pack_sequence_as(range(2), [4, 5])
pack_sequence_as({'a': 1, 'b': 2}.values(), [4, 5])
pack_sequence_as({'a': 1, 'b': 2}.keys(), [4, 5])
pack_sequence_as({1, 2}, [4])
map_structure(lambda a: a + 1, 1)
map_structure(lambda a: a + 1, [1, {'b': 2, 'a': (3,)}])
map_structure(lambda a, b: a + b, [1, 2], [3, 4])
map_structure(lambda a, b: a + b, [1, 2], (3, 4))
map_structure(lambda a, b: a + b, [1, 2], (3, 4), check_types=False)
map_structure(lambda a, b: a + b, [1, 2], [3])
map_structure(lambda a, b: (a, b), [1, 2], [3, [4]])
map_structure(lambda a, b: (a, b), [1, [2]], [3, 4])
map_structure(lambda a, b: (a, b), {'a': 1}, {'b': 2})
map_structure(lambda a, b: (a, b), {'a': 1, 'b': 2}, {'a': 2})
map_structure(lambda a, b: (a, b), {'a': 1}, OD([('a', 2)]))
map_structure(lambda a, b: (a, b), OD([('b', 1), ('a', 2)]), {'a': 3, 'b': 4})
map_structure(lambda: 1)
map_structure(1, [2])
map_structure(lambda a: a, [1], foo=2)
map_structure(lambda a: a, [1], check_type=True)
map_structure(lambda a: a, [])
map_structure(lambda a: a, {})
map_structure(lambda a: a, None)
map_structure(lambda a, b: (a, b), 1, 2)
map_structure(lambda a, b: (a, b), 1, [2])
map_structure(lambda a, b: (a, b), Point(1, 2), Point(3, 4))
map_structure(lambda a, b: (a, b), Point(1, 2), OtherPoint(3, 4))
map_structure(lambda a, b: (a, b), Point(1, 2), Pair(3, 4))
map_structure(lambda a, b: (a, b), Point(1, 2), (3, 4))
map_structure(lambda a, b: (a, b), (1, 2), Point(3, 4))
map_structure(lambda a, b: (a, b), Point(1, 2), (3, 4), check_types=False)
map_structure(lambda a: a * 2, Attrs(1, 2))
map_structure(lambda a: a * 2, Protocol('t', 1, 2))
map_structure(lambda a, b: a + b, Protocol('t', 1, 2), Protocol('u', 3, 4))
map_structure(lambda a: [a, a], (1, 2))
map_structure(lambda a, b, c: a + b + c, [1], [2], [3])
map_structure(lambda a, b, c: a + b + c, [1], [2], (3,))
assert_same_structure(1, 2)
assert_same_structure(1, 'a')
assert_same_structure([1], 2)
assert_same_structure(1, [2])
assert_same_structure([], ())
assert_same_structure([], {})
assert_same_structure([1, 2], [3, 4])
assert_same_structure([1, 2], [3])
assert_same_structure([1, 2], (3, 4))
assert_same_structure([1, 2], (3, 4), check_types=False)
assert_same_structure([1, 2], (3,), check_types=False)
assert_same_structure([1, [2]], [3, (4,)])
assert_same_structure([1, [2]], [3, 4])
assert_same_structure([1, [2, 3]], [[1, 2], 3])
assert_same_structure({'a': 1}, {'b': 1})
assert_same_structure({'a': 1}, {'b': 1}, check_types=False)
assert_same_structure({'a': 1}, {'a': 1, 'b': 2})
assert_same_structure({'a': 1}, OD(a=1))
assert_same_structure({'a': 1}, DD(int, a=1))
assert_same_structure({'a': 1}, MyMapping({'a': 1}))
assert_same_structure({'a': 1}, MyDict({'a': 1}))
assert_same_structure({'a': 1}, [1])
assert_same_structure({'a': 1}, [1], check_types=False)
assert_same_structure(MyList([1]), [2])
assert_same_structure([2], MyList([1]))
assert_same_structure(MyTuple([1]), (2,))
assert_same_structure((2,), MyTuple([1]))
assert_same_structure(MySequence([1]), [2])
assert_same_structure(Point(1, 2), OtherPoint(1, 2))
assert_same_structure(Point(1, 2), SubPoint(1, 2))
assert_same_structure(SubPoint(1, 2), Point(1, 2))
assert_same_structure(Point(1, 2), Pair(1, 2))
assert_same_structure(Point(1, 2), Pair(1, 2), check_types=False)
assert_same_structure(Point(1, 2), (1, 2))
assert_same_structure((1, 2), Point(1, 2))
assert_same_structure(Attrs(1, 2), Attrs(3, 4))
assert_same_structure(Attrs(1, 2), [3, 4])
assert_same_structure(Protocol('t', 1, 2), Protocol('u', 3, 4))
assert_same_structure(Protocol('t', 1, 2), Protocol('t', 3, [4]))
assert_same_structure(Protocol('t', 1, 2), [3, 4])
assert_same_structure({'a': [1, 2]}, {'a': [1]})
assert_same_structure([[1], [2]], [[1], [2], [3]])
assert_same_structure(np.zeros(2), 1)
assert_same_structure(np.zeros(2), [1, 2])
assert_same_structure('ab', ['a', 'b'])
assert_same_structure({1: 2, 'a': 3}, {1: 2, 'a': 3})
flatten_dict_items({'a': 1, 'b': 2})
flatten_dict_items({(4, 5, (6, 8)): ('a', 'b', ('c', 'd'))})
flatten_dict_items({('a', 'b'): (1, 2), 'c': 3})
flatten_dict_items(OD([(('b', 'a'), (1, 2))]))
flatten_dict_items({('a', 'b'): 1})
flatten_dict_items({'a': (1, 2)})
flatten_dict_items({('a', 'a'): (1, 2)})
flatten_dict_items({('a', 'b'): (1, 2, 3)})
flatten_dict_items([1])
assert_shallow_structure([0, 0], [1, [2, 3]])
assert_shallow_structure([0, [0]], [1, 2])
assert_shallow_structure([0, [0]], [1, (2,)])
assert_shallow_structure([0, [0]], [1, (2,)], check_types=False)
assert_shallow_structure(0, [1, 2])
assert_shallow_structure([0], 1)
assert_shallow_structure([0, 0], [1, 2, 3])
assert_shallow_structure([0, 0, 0], [1, 2])
assert_shallow_structure({'a': 0}, {'a': 1, 'b': 2})
assert_shallow_structure({'a': 0, 'b': 1}, {'a': 1, 'c': 2})
assert_shallow_structure({'a': 0}, OD(a=1))
assert_shallow_structure(OD(a=1), {'a': 0})
assert_shallow_structure({'a': 0}, DD(int, a=1))
assert_shallow_structure({'a': 0}, [1])
assert_shallow_structure({'a': 0}, [1], check_types=False)
assert_shallow_structure(Point(0, 0), OtherPoint(1, 2))
assert_shallow_structure(Point(0, 0), Pair(1, 2))
assert_shallow_structure(Point(0, 0), (1, 2))
assert_shallow_structure((0, 0), Point(1, 2))
assert_shallow_structure('a', 'b')
assert_shallow_structure([0], MyList([0]))
flatten_up_to([0, 0], [1, [2, 3]])
flatten_up_to([0, [0, 0]], [1, [2, [3]]])
flatten_up_to(0, [1, 2])
flatten_up_to({'a': 0, 'b': 0}, {'b': [1, 2], 'a': 3})
flatten_up_to([0], 1)
flatten_up_to([0, 0], [1])
flatten_up_to([0, 0], (1, 2))
flatten_up_to([0, 0], (1, 2), check_types=False)
flatten_up_to([], [])
flatten_up_to(Point(0, 0), Point([1], 2))
flatten_up_to('a', 'b')
flatten_up_to('a', [1])
flatten_up_to(['a'], [[1]])
flatten_with_tuple_paths_up_to([0, {'b': 0, 'a': 0}], [1, {'b': [2, 3], 'a': 4}])
flatten_with_tuple_paths_up_to(0, [1])
map_structure_up_to([0, 0], lambda a: a, [1, [2, 3]])
map_structure_up_to([0, [0]], lambda a, b: (a, b), [1, [2]], [[3, 4], [5]])
map_structure_up_to({'a': 0, 'b': 0}, lambda a, b: a, {'a': 1, 'b': [2]}, {'a': 3, 'b': 4})
map_structure_up_to([0], lambda a: a, [1, 2])
map_structure_up_to([0], lambda a: a)
map_structure_up_to([0], lambda a: a, (1,))
map_structure_up_to([0], lambda a: a, (1,), check_types=False)
map_structure_up_to([0], lambda a: a, [1], foo=1)
map_structure_up_to(0, lambda a: a, [1])
map_structure_up_to([0], 1, [1])
map_structure_with_tuple_paths_up_to([0, [0]], lambda p, a: (p, a), [1, [[2]]])
map_structure_with_paths(lambda p, a: (p, a), {'a': [1, 2], 'b': Point(3, 4)})
map_structure_with_paths(lambda p, a, b: (p, a, b), [1], [2])
map_structure_with_paths(lambda p, a: (p, a), 1)
map_structure_with_paths(lambda p, a, b: 1, [1], [2, 3])
map_structure_with_paths(lambda p: p)
map_structure_with_paths(1, [2])
map_structure_with_tuple_paths(lambda p, a: (p, a), {'a': [1, 2], 'b': Point(3, 4)})
map_structure_with_tuple_paths(lambda p, a, b: (p, a, b), [1], (2,))
map_structure_with_tuple_paths(lambda p, a, b: (p, a, b), [1], (2,), check_types=False)
flatten_with_joined_string_paths({'a': [1, 2], 'b': Point(3, {'c': 4})})
flatten_with_joined_string_paths({'a': [1, 2]}, separator='.')
flatten_with_joined_string_paths(3)
flatten_with_joined_string_paths([])
flatten_with_joined_string_paths(Attrs(1, [2]))
flatten_with_tuple_paths({'b': [1, 2], 'a': Point(3, {'c': 4})})
flatten_with_tuple_paths(3)
flatten_with_tuple_paths(Protocol('t', 1, [2]))
list(yield_flat_paths({'b': [1, 2], 'a': Point(3, {'c': 4})}))
list(yield_flat_paths(1))
list(yield_flat_paths(OD([('b', 1), ('a', 2)])))
get_traverse_shallow_structure(lambda s: not isinstance(s, tuple), [1, (2, 3), [4]])
get_traverse_shallow_structure(lambda s: isinstance(s, list), {'a': 1})
get_traverse_shallow_structure(lambda s: {'a': True, 'b': False}, {'a': 1, 'b': [2]})
get_traverse_shallow_structure(lambda s: [True, False] if isinstance(s, list) and len(s) == 2 else True, [[1, 2], [3]])
get_traverse_shallow_structure(lambda s: 3, [1])
get_traverse_shallow_structure(lambda s: [1, 2], [1, 2])
get_traverse_shallow_structure(lambda s: [True, True], [1, [3]])
get_traverse_shallow_structure(lambda s: True, 3)
list_to_tuple([1, [2, (3,)], {'a': [4]}])
list_to_tuple(1)
list_to_tuple(Point([1], 2))
is_namedtuple(Point(1, 2))
is_namedtuple(SubPoint(1, 2))
is_namedtuple(SubPoint(1, 2), True)
is_namedtuple(Point(1, 2), True)
is_namedtuple((1, 2))
is_mapping({})
is_mapping(MyMapping())
is_mapping([])
is_attrs(Attrs(1, 2))
is_attrs(1)
same_namedtuples(Point(1, 2), OtherPoint(1, 2))
same_namedtuples(Point(1, 2), Pair(1, 2))
is_nested_or_composite([])
flatten(TaggedDict('t', {'b': 1, 'a': 2}))
pack_sequence_as(TaggedDict('t', {'b': 1, 'a': 2}), [3, 4])
pack_sequence_as(TaggedList('t', [1, 2]), [3, 4])
pack_sequence_as(empty_mapping(b=1, a=2), [3, 4])
pack_sequence_as(bytearray(b'ab'), [3, 4])
pack_sequence_as(memoryview(b'ab'), [3, 4])
pack_sequence_as(collections.deque([1, 2], maxlen=2), [3, 4])
pack_sequence_as(collections.Counter(a=1, b=2), [3, 4])
pack_sequence_as([(), {}, []], [])
assert_same_structure([1, [2]], [1, (2,), 3])
assert_same_structure([1, (2,), 3], [1, [2]])
assert_same_structure([1, [2], 3], [[1], [2]])
assert_same_structure([1, [2, 3]], [1, (2,)])
assert_same_structure([1], [1, 2, 3], check_types=False)
assert_same_structure(collections.deque([1]), [1])
assert_same_structure(range(2), [1, 2])
assert_same_structure(MySequence([1]), MySequence([2]))
assert_same_structure({'a': 1}.values(), {'a': 1}.keys())
assert_same_structure(types.SimpleNamespace(a=1), 1)
assert_shallow_structure([[0]], [[1, 2], 3])
assert_shallow_structure({'a': {'b': 0}}, {'a': {'b': 1, 'c': 2}})
flatten_up_to({'a': 0}, {'a': 1, 'b': 2})
flatten_up_to({'b': 0, 'a': 0}, OD([('a', 1), ('b', 2)]))
flatten_up_to([0, 0], range(2), check_types=False)
flatten_up_to(Attrs(0, 0), Attrs(1, [2]))
flatten_up_to({1: 0, 'a': 0}, {1: 0, 'a': 0})
map_structure_up_to((0, 0), lambda a: a, Point(1, 2))
map_structure_up_to(Point(0, 0), lambda a: a, OtherPoint(1, [2]))
map_structure_up_to(None, lambda a: a, None)
map_structure(lambda a: a, {1: 0, 'a': 0})
map_structure(lambda a, b: a, {1: 0, 'a': 0}, {1: 0, 'a': 0})
map_structure(None, [])
map_structure(lambda a: a + 1, range(3))
map_structure(lambda a: a + 1, counter())
map_structure(lambda a, b: (a, b), [], [])
map_structure(lambda a, b: (a, b), [], {}, check_types=False)
"""


def outcomes(nest):
    """[[expression, result or None, error class or None, message or None], ...] under a `nest` module."""
    names = dict(NAMES)
    # As names of the module: a shim so that cases read `flatten(x)`.
    for name in dir(nest):
        if not name.startswith("_") and callable(getattr(nest, name)):
            names[name] = getattr(nest, name)
    results = []
    for line in CASES.strip().splitlines():
        if (
            line.split("(")[0].isidentifier()
            and line.split("(")[0] not in names
            and line.split("(")[0] not in ("type", "list")
        ):
            continue
        try:
            results.append([line, repr(eval(line, dict(names))), None, None])
        except Exception as error:
            results.append([line, None, type(error).__name__, str(error)])
    return results
