// Counts the file operations of a program below one directory, and makes one of them fail or kills
// the program in its place. Preloaded into the program under test; see shim.rs for the variables.
//
// Only what goes through the C library is seen, which is all that Rust's standard library does.

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define ROOM (2 * PATH_MAX)

static const char *root;
static size_t root_length;
static long at = -1;      // The call that fails, counted from 0.
static long last = -1;    // The last one that fails.
static int error_number;  // 0: the program is killed.
static int log_file = -1;
static atomic_long calls;

static long number(const char *name, long otherwise) {
    const char *text = getenv(name);
    return text ? atol(text) : otherwise;
}

__attribute__((constructor)) static void start(void) {
    const char *log = getenv("SHIM_LOG");
    if (log) log_file = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_APPEND | O_CLOEXEC);
    at = number("SHIM_AT", -1);
    last = number("SHIM_LAST", at);
    error_number = number("SHIM_ERRNO", 0);
    root = getenv("SHIM_ROOT");
    root_length = root ? strlen(root) : 0;
}

// Whether this call must fail; errno is set then.
static int fails(const char *operation, const char *path) {
    if (!root || strncmp(path, root, root_length) || (path[root_length] && path[root_length] != '/'))
        return 0;
    long call = atomic_fetch_add(&calls, 1);
    int chosen = at >= 0 && call >= at && call <= last;
    if (log_file >= 0) {
        char line[ROOM + 64];
        const char *mark = chosen ? "!" : "";
        int length = snprintf(line, sizeof line, "%s%s\t%s\n", mark, operation, path);
        // The log is opened for appending, so that lines of several threads do not mix.
        syscall(SYS_write, log_file, line, (size_t)length);
    }
    if (!chosen) return 0;
    if (!error_number) kill(getpid(), SIGKILL);
    errno = error_number;
    return 1;
}

static int fails_file(const char *operation, int file) {
    char link[64], path[ROOM];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return fails(operation, path);
}

// A path that may start at the working directory or at an open one.
static int fails_at(const char *operation, int folder, const char *name) {
    if (name[0] == '/') return fails(operation, name);
    char path[ROOM];
    if (folder == AT_FDCWD) {
        if (!getcwd(path, PATH_MAX)) return 0;
    } else {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t length = readlink(link, path, PATH_MAX - 1);
        if (length < 0) return 0;
        path[length] = 0;
    }
    size_t length = strlen(path);
    snprintf(path + length, sizeof path - length, "/%s", name);
    return fails(operation, path);
}

#define REAL(name) ((__typeof__(&name))real(&real_##name, #name))

static void *real(void *_Atomic *found, const char *name) {
    if (!*found) *found = dlsym(RTLD_NEXT, name);
    return *found;
}

// A function whose arguments are passed on unless the condition holds.
#define WRAP(result, name, parameters, arguments, condition)  \
    static void *_Atomic real_##name;                         \
    result name parameters {                                  \
        return (condition) ? -1 : REAL(name) arguments;       \
    }

#define WRAP_OPEN(name, parameters, arguments, condition)                   \
    static void *_Atomic real_##name;                                       \
    int name parameters {                                                   \
        va_list rest;                                                       \
        va_start(rest, flags);                                              \
        mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest);                                                       \
        return (condition) ? -1 : REAL(name) arguments;                     \
    }

#define OPENING (flags & O_CREAT ? "create" : "open")
WRAP_OPEN(open, (const char *path, int flags, ...), (path, flags, mode), fails_at(OPENING, AT_FDCWD, path))
WRAP_OPEN(open64, (const char *path, int flags, ...), (path, flags, mode), fails_at(OPENING, AT_FDCWD, path))
WRAP_OPEN(openat, (int in, const char *path, int flags, ...), (in, path, flags, mode), fails_at(OPENING, in, path))
WRAP_OPEN(openat64, (int in, const char *path, int flags, ...), (in, path, flags, mode), fails_at(OPENING, in, path))

WRAP(ssize_t, read, (int file, void *to, size_t n), (file, to, n), fails_file("read", file))
WRAP(ssize_t, pread, (int file, void *to, size_t n, off_t from), (file, to, n, from), fails_file("read", file))
WRAP(ssize_t, pread64, (int file, void *to, size_t n, off64_t from), (file, to, n, from), fails_file("read", file))
WRAP(ssize_t, readv, (int file, const struct iovec *to, int n), (file, to, n), fails_file("read", file))

WRAP(ssize_t, write, (int file, const void *from, size_t n), (file, from, n), fails_file("write", file))
WRAP(ssize_t, pwrite, (int file, const void *from, size_t n, off_t to), (file, from, n, to), fails_file("write", file))
WRAP(ssize_t, pwrite64, (int file, const void *from, size_t n, off64_t to), (file, from, n, to), fails_file("write", file))
WRAP(ssize_t, writev, (int file, const struct iovec *from, int n), (file, from, n), fails_file("write", file))
WRAP(ssize_t, copy_file_range, (int in, off64_t *in_at, int out, off64_t *out_at, size_t n, unsigned flags), (in, in_at, out, out_at, n, flags), fails_file("write", out))

// Nothing here is about power cuts, and what the kernel holds survives a kill; a real sync would
// only take time.
int fsync(int file) { return fails_file("sync", file) ? -1 : 0; }
int fdatasync(int file) { return fails_file("sync", file) ? -1 : 0; }

WRAP(int, ftruncate, (int file, off_t length), (file, length), fails_file("truncate", file))
WRAP(int, ftruncate64, (int file, off64_t length), (file, length), fails_file("truncate", file))

WRAP(int, rename, (const char *from, const char *to), (from, to), fails_at("rename", AT_FDCWD, to))
WRAP(int, unlink, (const char *path), (path), fails_at("remove", AT_FDCWD, path))
WRAP(int, unlinkat, (int in, const char *path, int flags), (in, path, flags), fails_at("remove", in, path))
WRAP(int, rmdir, (const char *path), (path), fails_at("remove", AT_FDCWD, path))
WRAP(int, mkdir, (const char *path, mode_t mode), (path, mode), fails_at("mkdir", AT_FDCWD, path))

static void *_Atomic real_opendir;
DIR *opendir(const char *path) {
    return fails_at("open", AT_FDCWD, path) ? NULL : REAL(opendir)(path);
}
