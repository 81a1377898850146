/* Preloaded under a program: counts the calls that change files below one directory, and kills the program at one of them or lets it fail.

   shim_arm(directory, number, action) starts counting. Actions: see the enumeration. shim_seen() returns the count. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { COUNT, KILL_BEFORE, KILL_AFTER, FAIL_ONCE_EIO, FAIL_ONCE_EACCES, FULL };

static char root[PATH_MAX];
static size_t root_length;
static long target, seen;
static int action, armed;

void shim_arm(const char *directory, long number, int what) {
    snprintf(root, sizeof root, "%s", directory);
    root_length = strlen(root);
    target = number;
    action = what;
    __atomic_store_n(&seen, 0, __ATOMIC_SEQ_CST);
    armed = 1;
}

long shim_seen(void) { return __atomic_load_n(&seen, __ATOMIC_SEQ_CST); }

static int below(const char *path) { return armed && path && strncmp(path, root, root_length) == 0; }

static int open_below(int descriptor) {
    char link[64], path[PATH_MAX];
    if (!armed) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return below(path);
}

static int either(int directory, const char *path) { return below(path) || (path && path[0] != '/' && open_below(directory)); }

static void end(void) { kill(getpid(), SIGKILL); for (;;) pause(); }

/* Returns 1 if the call must fail, with errno set. `fills` says whether it needs space on the disk. */
static int fails(int fills, int *kill_after) {
    long number = __atomic_add_fetch(&seen, 1, __ATOMIC_SEQ_CST);
    *kill_after = 0;
    if (action == FULL && number >= target && fills) { errno = ENOSPC; return 1; }
    if (number != target) return 0;
    if (action == KILL_BEFORE) end();
    if (action == KILL_AFTER) *kill_after = 1;
    if (action == FAIL_ONCE_EIO) { errno = EIO; return 1; }
    if (action == FAIL_ONCE_EACCES) { errno = EACCES; return 1; }
    return 0;
}

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define GUARDED(condition, fills, call) \
    int after; \
    if (!(condition)) return call; \
    if (fails(fills, &after)) return -1; \
    __typeof__(call) result = call; \
    if (after) end(); \
    return result

ssize_t write(int fd, const void *data, size_t size) {
    REAL(write);
    int after;
    if (!open_below(fd)) return real(fd, data, size);
    if (fails(1, &after)) return -1;
    ssize_t result = real(fd, data, after ? size / 2 : size); /* a crash may leave half of what is written */
    if (after) end();
    return result;
}
ssize_t writev(int fd, const struct iovec *parts, int count) { REAL(writev); GUARDED(open_below(fd), 1, real(fd, parts, count)); }
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) { REAL(pwrite64); GUARDED(open_below(fd), 1, real(fd, data, size, at)); }
int fsync(int fd) { REAL(fsync); GUARDED(open_below(fd), 1, real(fd)); }
int fdatasync(int fd) { REAL(fdatasync); GUARDED(open_below(fd), 1, real(fd)); }
int ftruncate64(int fd, off64_t size) { REAL(ftruncate64); GUARDED(open_below(fd), 1, real(fd, size)); }
int rename(const char *from, const char *to) { REAL(rename); GUARDED(below(to), 0, real(from, to)); }
int renameat(int a, const char *from, int b, const char *to) { REAL(renameat); GUARDED(either(b, to), 0, real(a, from, b, to)); }
int renameat2(int a, const char *from, int b, const char *to, unsigned flags) {
    REAL(renameat2);
    GUARDED(either(b, to), 0, real(a, from, b, to, flags));
}
int unlink(const char *path) { REAL(unlink); GUARDED(below(path), 0, real(path)); }
int unlinkat(int directory, const char *path, int flags) { REAL(unlinkat); GUARDED(either(directory, path), 0, real(directory, path, flags)); }
int rmdir(const char *path) { REAL(rmdir); GUARDED(below(path), 0, real(path)); }
int mkdir(const char *path, mode_t mode) { REAL(mkdir); GUARDED(below(path), 1, real(path, mode)); }
int link(const char *from, const char *to) { REAL(link); GUARDED(below(to), 1, real(from, to)); }
int linkat(int a, const char *from, int b, const char *to, int flags) { REAL(linkat); GUARDED(either(b, to), 1, real(a, from, b, to, flags)); }

#define MODE(flags) \
    mode_t mode = 0; \
    if ((flags) & O_CREAT) { va_list list; va_start(list, flags); mode = va_arg(list, int); va_end(list); }
int open(const char *path, int flags, ...) { MODE(flags) REAL(open); GUARDED((flags & O_CREAT) && below(path), 1, real(path, flags, mode)); }
int open64(const char *path, int flags, ...) { MODE(flags) REAL(open64); GUARDED((flags & O_CREAT) && below(path), 1, real(path, flags, mode)); }
int openat(int at, const char *path, int flags, ...) {
    MODE(flags)
    REAL(openat);
    GUARDED((flags & O_CREAT) && either(at, path), 1, real(at, path, flags, mode));
}
int openat64(int at, const char *path, int flags, ...) {
    MODE(flags)
    REAL(openat64);
    GUARDED((flags & O_CREAT) && either(at, path), 1, real(at, path, flags, mode));
}
