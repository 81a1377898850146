/* Parses batches of serialized SequenceExamples into columns.
 *
 *   SequenceExample := (0x0a chunk(Features) | 0x12 chunk(FeatureLists) | unknown field)*
 *   Features        := (0x0a chunk(key value))*     key = 0x0a chunk, value = 0x12 chunk(Feature)
 *   FeatureLists    := (0x0a chunk(key value))*     key = 0x0a chunk, value = 0x12 chunk(FeatureList)
 *   FeatureList     := (0x0a chunk(Feature))*       one Feature per step; an empty one is a step without values
 *
 * If a name occurs twice, the later entry is used, even if it is empty.
 */
#include "features.h"

typedef struct {
  Kind kind;
  Vector values;
  Vector steps;    /* int64_t: values per step, row by row (feature lists only) */
  int64_t *counts; /* per row: values (context) or steps (feature lists) */
  char *present;   /* per row: 1 if the name occurs */
} Column;

typedef struct {
  Names names;
  Column *columns;
  PyObject **keys;
  Span *found;
} Group;

static bool walk_entries(Span entries, Group *group) {
  while (entries.at != entries.end) {
    Span entry, key, value;
    if (!take_tag(&entries, TAG_1_CHUNK) || !enter_chunk(&entries, &entry)) return false;
    if (!read_tagged_chunk(&entry, TAG_1_CHUNK, &key) || !read_tagged_chunk(&entry, TAG_2_CHUNK, &value)) return false;
    if (entry.at != entry.end) return false;
    Py_ssize_t k = names_find(&group->names, key);
    if (k >= 0) group->found[k] = value;
  }
  return true;
}

static bool find_entries(Span row, Group *context, Group *lists) {
  memset(context->found, 0, (size_t)context->names.count * sizeof *context->found);
  memset(lists->found, 0, (size_t)lists->names.count * sizeof *lists->found);
  while (row.at != row.end) {
    uint64_t tag;
    Span chunk;
    if (take_tag(&row, TAG_1_CHUNK)) {
      if (!enter_chunk(&row, &chunk) || !walk_entries(chunk, context)) return false;
    } else if (take_tag(&row, TAG_2_CHUNK)) {
      if (!enter_chunk(&row, &chunk) || !walk_entries(chunk, lists)) return false;
    } else if (!read_varint(&row, &tag) || !skip_payload(&row, (uint32_t)tag)) {
      return false;
    }
  }
  return true;
}

/* Like enter_chunk, but a chunk with a nonzero length must not be empty. */
static bool enter_filled(Span *in, Span *chunk) {
  Span peek = *in;
  uint64_t claimed;
  return read_varint(&peek, &claimed) && enter_chunk(in, chunk) && (chunk->at != chunk->end || !(uint32_t)claimed);
}

/* Finds the list of a nonempty Feature. An unknown kind counts as a wrong kind here. A list with a nonzero length must
 * not be empty, except for lists of bytes in the context or with a length of 2^31 or more. */
static Problem filled_list(Span feature, Kind wanted, bool in_step, Span *list, long long *detail) {
  Kind found = 0;
  uint64_t claimed;
  Problem problem = feature_list(feature, wanted, list, &found);
  if (problem == UNSUPPORTED || problem == WRONG_KIND) {
    *detail = found;
    return WRONG_KIND;
  }
  feature.at++;
  if (problem || !read_varint(&feature, &claimed)) return BAD_LIST;
  bool may_lack = wanted == BYTES && (!in_step || (uint32_t)claimed > INT32_MAX);
  return list->at == list->end && (uint32_t)claimed && !may_lack ? BAD_LIST : FINE;
}

static Problem take_context(Column *column, Py_ssize_t row, Span feature, long long *detail) {
  Span list;
  if (feature.at == feature.end) return FINE;
  Problem problem = filled_list(feature, column->kind, false, &list, detail);
  if (problem) return problem;
  size_t before = column->values.count;
  problem = append_values(list, column->kind, true, &column->values);
  column->counts[row] = (int64_t)(column->values.count - before);
  return problem;
}

/* Reads the list of a step, and moves `steps` to the start of the next one: after the packed chunk, or after the list
 * if there is none. The declared length of the step itself is ignored. */
static Problem next_list(Span *steps, Kind wanted, Span *list, long long *detail) {
  Span rest = *steps, feature; /* `rest` moves past the step, `steps` only past the bytes that are read */
  list->at = list->end = NULL;
  if (!enter_filled(&rest, &feature)) return BAD_LIST;
  steps->at = feature.at;
  if (feature.at == feature.end) return FINE;
  Problem problem = filled_list(feature, wanted, true, list, detail);
  if (problem) return problem;
  if (wanted != BYTES && list->at != list->end && *list->at == TAG_1_CHUNK) {
    Span packed, in = {list->at + 1, list->end};
    if (!enter_chunk(&in, &packed)) return BAD_LIST;
    list->end = packed.end;
  }
  steps->at = list->end;
  return FINE;
}

static Problem take_steps(Column *column, Py_ssize_t row, Span steps, Py_ssize_t *step, long long *detail) {
  for (*step = 0; steps.at != steps.end; ++*step) {
    size_t before = column->values.count;
    Span list;
    if (!take_tag(&steps, TAG_1_CHUNK)) return BAD_LIST;
    Problem problem = next_list(&steps, column->kind, &list, detail);
    if (!problem) problem = append_values(list, column->kind, true, &column->values);
    if (problem) return problem;
    if (!vector_reserve(&column->steps, 1, sizeof(int64_t))) return NO_MEMORY;
    ((int64_t *)column->steps.data)[column->steps.count++] = (int64_t)(column->values.count - before);
  }
  column->counts[row] = *step;
  *step = -1;
  return FINE;
}

static void take_rows(const Span *rows, Py_ssize_t row_count, Group *context, Group *lists, Failure *failure) {
  for (Py_ssize_t r = 0; r < row_count; r++) {
    failure->row = r;
    if (!find_entries(rows[r], context, lists)) {
      failure->problem = MALFORMED;
      failure->feature = -1;
      return;
    }
    /* `feature` numbers the context features first, then the lists. */
    for (Py_ssize_t k = 0; k < context->names.count + lists->names.count; k++) {
      bool is_list = k >= context->names.count;
      Group *group = is_list ? lists : context;
      Py_ssize_t g = is_list ? k - context->names.count : k;
      if (!group->found[g].at) continue;
      group->columns[g].present[r] = 1;
      failure->feature = k;
      failure->problem = is_list ? take_steps(&group->columns[g], r, group->found[g], &failure->step, &failure->detail)
                                 : take_context(&group->columns[g], r, group->found[g], &failure->detail);
      if (failure->problem) return;
    }
  }
}

static bool group_make(Group *group, PyObject *features, Py_ssize_t row_count) {
  Py_ssize_t count = PyTuple_GET_SIZE(features);
  group->names.count = count; /* group_free relies on it */
  group->columns = calloc((size_t)count + 1, sizeof *group->columns);
  group->keys = calloc((size_t)count + 1, sizeof *group->keys);
  group->found = calloc((size_t)count + 1, sizeof *group->found);
  if (!group->columns || !group->keys || !group->found) goto no_memory;
  for (Py_ssize_t k = 0; k < count; k++) {
    Column *column = &group->columns[k];
    int kind;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(features, k), "Si", &group->keys[k], &kind)) return false;
    if (kind < BYTES || kind > INTS) {
      PyErr_SetString(PyExc_ValueError, "kind must be 1, 2 or 3");
      return false;
    }
    column->kind = (Kind)kind;
    column->counts = calloc((size_t)row_count + 1, sizeof(int64_t));
    column->present = calloc((size_t)row_count + 1, 1);
    if (!column->counts || !column->present) goto no_memory;
  }
  if (names_make(&group->names, group->keys, count)) return true;
no_memory:
  PyErr_NoMemory();
  return false;
}

static void group_free(Group *group) {
  for (Py_ssize_t k = 0; group->columns && k < group->names.count; k++) {
    Column *column = &group->columns[k];
    vector_free(&column->values);
    vector_free(&column->steps);
    free(column->counts);
    free(column->present);
  }
  names_free(&group->names);
  free(group->columns);
  free(group->keys);
  free(group->found);
}

static PyObject *group_to_python(const Group *group, Py_ssize_t row_count) {
  PyObject *list = PyList_New(group->names.count);
  for (Py_ssize_t k = 0; list && k < group->names.count; k++) {
    const Column *column = &group->columns[k];
    PyObject *values = values_to_python(&column->values, column->kind);
    PyObject *steps = values_to_python(&column->steps, INTS);
    PyObject *counts =
        PyByteArray_FromStringAndSize((const char *)column->counts, row_count * (Py_ssize_t)sizeof(int64_t));
    PyObject *present = PyByteArray_FromStringAndSize(column->present, row_count);
    PyObject *whole = values && steps && counts && present ? PyTuple_Pack(4, values, steps, counts, present) : NULL;
    Py_XDECREF(values);
    Py_XDECREF(steps);
    Py_XDECREF(counts);
    Py_XDECREF(present);
    if (!whole) {
      Py_CLEAR(list);
      break;
    }
    PyList_SET_ITEM(list, k, whole);
  }
  return list;
}

/* parse_sequence_examples(rows, context, lists) -> (failure, context columns, list columns)
 *
 * rows: tuple of bytes. context, lists: tuples of (key, kind), keys distinct within each.
 * failure: None, or (problem, row, feature, step, detail), in which case the columns are None. feature numbers the
 * context features first, then the lists. step is -1 outside lists.
 * columns: for each feature, (values, values per step, count per row, presence per row). The values are a bytearray of
 * numbers or a list of bytes, the counts are int64, and presence is one byte. For a context feature, there are no
 * steps and the count is the number of values; for a list, it is the number of steps.
 */
PyObject *native_parse_sequence_examples(PyObject *module, PyObject *args) {
  PyObject *rows, *context_features, *list_features, *result = NULL;
  PyObject *problem = NULL, *context_columns = NULL, *list_columns = NULL;
  if (!PyArg_ParseTuple(args, "O!O!O!", &PyTuple_Type, &rows, &PyTuple_Type, &context_features, &PyTuple_Type,
                        &list_features))
    return NULL;
  Py_ssize_t row_count = PyTuple_GET_SIZE(rows);
  Group context = {0}, lists = {0};
  Failure failure = {FINE, -1, -1, -1, 0};
  Span *spans = rows_make(rows);
  if (!spans) return NULL;
  if (!group_make(&context, context_features, row_count) || !group_make(&lists, list_features, row_count)) goto done;

  /* The tuples hold references to all objects that are read, and bytes are immutable, so the GIL is not needed. */
  Py_BEGIN_ALLOW_THREADS
  take_rows(spans, row_count, &context, &lists, &failure);
  Py_END_ALLOW_THREADS

  problem = failure_to_python(&failure);
  if (!problem) goto done;
  if (failure.problem) {
    result = PyTuple_Pack(3, problem, Py_None, Py_None);
    goto done;
  }
  context_columns = group_to_python(&context, row_count);
  list_columns = context_columns ? group_to_python(&lists, row_count) : NULL;
  if (list_columns) result = PyTuple_Pack(3, problem, context_columns, list_columns);
done:
  Py_XDECREF(problem);
  Py_XDECREF(context_columns);
  Py_XDECREF(list_columns);
  group_free(&context);
  group_free(&lists);
  free(spans);
  return result;
}
