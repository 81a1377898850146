/* Reads many small files in one call. Which of them could not be read, and why, is for gfile.py to find out. */
#include "native.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPEN_AT_ONCE = 64, MOST_BYTES = 1 << 24 };

typedef struct {
  const char *path;
  char *contents;
  off_t size;
  int descriptor;
} open_file;

/* Regular files of moderate size only: others may have no size, or take long enough that their thread should be asked whether it is to stop. */
static void open_one(open_file *file) {
  struct stat found;
  do file->descriptor = open(file->path, O_RDONLY | O_CLOEXEC);
  while (file->descriptor < 0 && errno == EINTR);
  if (file->descriptor < 0) return;
  if (fstat(file->descriptor, &found) == 0 && S_ISREG(found.st_mode) && found.st_size <= MOST_BYTES) {
    file->size = found.st_size;
    return;
  }
  close(file->descriptor);
  file->descriptor = -1;
}

/* Fills the contents. A file that has changed its size since counts as unreadable. */
static void read_one(open_file *file) {
  if (file->descriptor < 0) return;
  off_t filled = 0;
  char behind;
  while (file->contents && filled <= file->size) {
    ssize_t part = filled < file->size ? read(file->descriptor, file->contents + filled, file->size - filled)
                                       : read(file->descriptor, &behind, 1);
    if (part < 0 && errno == EINTR) continue;
    if (part <= 0) break;
    filled += part;
  }
  if (filled != file->size) file->contents = NULL;
  close(file->descriptor);
}

/* read_files(paths): a list of the contents of files, with None for those that could not be read. */
PyObject *native_read_files(PyObject *module, PyObject *paths) {
  PyObject *given = PySequence_Tuple(paths);
  if (!given) return NULL;
  Py_ssize_t count = PyTuple_GET_SIZE(given);
  PyObject *result = PyList_New(count);
  open_file files[OPEN_AT_ONCE];
  for (Py_ssize_t first = 0; result && first < count; first += OPEN_AT_ONCE) {
    Py_ssize_t number = count - first < OPEN_AT_ONCE ? count - first : OPEN_AT_ONCE;
    for (Py_ssize_t i = 0; i < number; i++) {
      PyObject *path = PyTuple_GET_ITEM(given, first + i);
      Py_INCREF(Py_None);
      PyList_SET_ITEM(result, first + i, Py_None);
      files[i] = (open_file){NULL, NULL, 0, -1};
      if (PyBytes_Check(path) && strlen(PyBytes_AS_STRING(path)) == (size_t)PyBytes_GET_SIZE(path)) files[i].path = PyBytes_AS_STRING(path);
    }
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < number; i++)
      if (files[i].path) open_one(&files[i]);
    Py_END_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < number; i++) {
      PyObject *made = files[i].descriptor < 0 ? NULL : PyBytes_FromStringAndSize(NULL, files[i].size);
      if (made) {
        files[i].contents = PyBytes_AS_STRING(made);
        PyList_SetItem(result, first + i, made);
      } else {
        PyErr_Clear();
      }
    }
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < number; i++) read_one(&files[i]);
    Py_END_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < number; i++) {
      if (files[i].descriptor >= 0 && !files[i].contents) {
        Py_INCREF(Py_None);
        PyList_SetItem(result, first + i, Py_None);
      }
    }
  }
  Py_DECREF(given);
  return result;
}
