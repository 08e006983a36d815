// A disk that fails, for tests: preloaded into a process (LD_PRELOAD), it lets the changes that the process makes below a directory fail from the n-th on.
// A change is what takes space or a directory entry; reading, deleting and closing go on working, as on a full disk.
//
//   CG_DISK        the directory, absolute; without it nothing is touched
//   CG_DISK_FROM   the first change that fails, from 1; 0 or absent: none
//   CG_DISK_COUNT  how many fail, then the disk is well again; absent: all
//   CG_DISK_ERROR  ENOSPC (default), EDQUOT, EIO, EROFS; with EROFS, deleting and opening for writing fail too
//   CG_DISK_TALLY  a file outside of the directory that gets a line a change: its number, the call, the path
//   CG_CLOCK_SHIFT seconds by which the wall clock is off, after change CG_CLOCK_AFTER (default 0: from the start)
#ifdef __linux__
#undef _FILE_OFFSET_BITS  // both names of each call are defined below
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

struct Plan {
  std::string directory;
  long from = 0, count = 0, shift = 0, shift_after = 0;
  int error = ENOSPC;
  int tally = -1;
};

std::atomic<long> changes{0};

long number(const char* name, long otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::strtol(text, nullptr, 10) : otherwise;
}

Plan read_plan() {
  Plan plan;
  if (const char* directory = std::getenv("CG_DISK")) plan.directory = directory;
  plan.from = number("CG_DISK_FROM", 0);
  plan.count = number("CG_DISK_COUNT", 1L << 40);
  plan.shift = number("CG_CLOCK_SHIFT", 0);
  plan.shift_after = number("CG_CLOCK_AFTER", 0);
  const std::string error = std::getenv("CG_DISK_ERROR") ? std::getenv("CG_DISK_ERROR") : "";
  if (error == "EDQUOT") plan.error = EDQUOT;
  if (error == "EIO") plan.error = EIO;
  if (error == "EROFS") plan.error = EROFS;
  if (const char* tally = std::getenv("CG_DISK_TALLY"))
    plan.tally = static_cast<int>(syscall(SYS_openat, AT_FDCWD, tally, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  return plan;
}

const Plan& plan() {
  static const Plan* made = new Plan(read_plan());  // never destroyed: threads outlive main
  return *made;
}

// Paths are put together in fixed buffers: signal handlers write too, and must not meet the allocator.
struct Path {
  char text[8192];
  size_t size = 0;
};

void read_link(const char* link, Path* path) {
  const ssize_t n = readlink(link, path->text, sizeof path->text - 1);
  path->size = n > 0 ? static_cast<size_t>(n) : 0;
  path->text[path->size] = 0;
}

void path_of(int fd, Path* path) {
  char link[32];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  read_link(link, path);
}

// Adds the parts of `more` to an absolute path, `.` and `..` worked out.
void append(const char* more, Path* path) {
  while (*more) {
    while (*more == '/') ++more;
    const size_t size = std::strcspn(more, "/");
    const bool up = size == 2 && more[0] == '.' && more[1] == '.';
    if (up)
      while (path->size > 0 && path->text[--path->size] != '/') continue;
    else if (size > 0 && !(size == 1 && more[0] == '.') && path->size + size + 2 < sizeof path->text) {
      path->text[path->size++] = '/';
      std::memcpy(path->text + path->size, more, size);
      path->size += size;
    }
    path->text[path->size] = 0;
    more += size;
  }
}

void path_at(int directory, const char* name, Path* path) {
  if (name[0] == '/') path->text[0] = 0;
  else if (directory == AT_FDCWD) read_link("/proc/self/cwd", path);
  else path_of(directory, path);
  append(name, path);
}

bool inside(const Path& path) {
  const std::string& directory = plan().directory;
  return path.size >= directory.size() && std::memcmp(path.text, directory.data(), directory.size()) == 0 &&
         (path.size == directory.size() || path.text[directory.size()] == '/');
}

// Counts a change; true, with errno set, when it is to fail.
bool fails(const char* call, const Path& path) {
  if (!inside(path)) return false;
  const long n = ++changes;
  const Plan& p = plan();
  if (p.tally >= 0) {
    char line[sizeof path.text + 64];
    const int size = std::snprintf(line, sizeof line, "%ld %s %s\n", n, call, path.text);
    syscall(SYS_write, p.tally, line, static_cast<size_t>(size));
  }
  if (p.from <= 0 || n < p.from || n >= p.from + p.count) return false;
  errno = p.error;
  return true;
}

bool fails_fd(const char* call, int fd) {
  if (plan().directory.empty()) return false;
  Path path;
  path_of(fd, &path);
  return fails(call, path);
}

bool fails_at(const char* call, int directory, const char* name) {
  if (plan().directory.empty()) return false;
  Path path;
  path_at(directory, name, &path);
  return fails(call, path);
}

// An open is a change when it makes a file or empties one; on a read-only disk every one for writing.
bool open_fails(int directory, const char* path, int flags) {
  if (plan().directory.empty()) return false;
  struct stat info;
  const bool makes = (flags & O_CREAT) && fstatat(directory, path, &info, 0) != 0;
  const bool writes = plan().error == EROFS && (flags & O_ACCMODE) != O_RDONLY;
  return (makes || (flags & O_TRUNC) || writes) && fails_at("open", directory, path);
}

template <class F>
F real(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

mode_t mode_of(int flags, va_list arguments) { return flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0; }

long shift_now() { return changes.load() >= plan().shift_after ? plan().shift : 0; }

}  // namespace

extern "C" {

#define OPEN(name)                                                         \
  int name(const char* path, int flags, ...) {                             \
    va_list arguments;                                                     \
    va_start(arguments, flags);                                            \
    const mode_t mode = mode_of(flags, arguments);                         \
    va_end(arguments);                                                     \
    if (open_fails(AT_FDCWD, path, flags)) return -1;                      \
    static const auto next = real<int (*)(const char*, int, ...)>(#name);  \
    return next(path, flags, mode);                                        \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                           \
  int name(int directory, const char* path, int flags, ...) {                  \
    va_list arguments;                                                         \
    va_start(arguments, flags);                                                \
    const mode_t mode = mode_of(flags, arguments);                             \
    va_end(arguments);                                                         \
    if (open_fails(directory, path, flags)) return -1;                         \
    static const auto next = real<int (*)(int, const char*, int, ...)>(#name); \
    return next(directory, path, flags, mode);                                 \
  }
OPENAT(openat)
OPENAT(openat64)

// Calls on a descriptor.
#define ON_FD(result, name, parameters, arguments)           \
  result name parameters {                                   \
    if (fails_fd(#name, fd)) return -1;                      \
    static const auto next = real<result(*) parameters>(#name); \
    return next arguments;                                   \
  }
ssize_t write(int fd, const void* bytes, size_t size) {  // without dlsym, for signal handlers
  return fails_fd("write", fd) ? -1 : syscall(SYS_write, fd, bytes, size);
}
ON_FD(ssize_t, pwrite, (int fd, const void* bytes, size_t size, off_t at), (fd, bytes, size, at))
ON_FD(ssize_t, pwrite64, (int fd, const void* bytes, size_t size, off64_t at), (fd, bytes, size, at))
ON_FD(ssize_t, writev, (int fd, const struct iovec* parts, int count), (fd, parts, count))
ON_FD(ssize_t, pwritev, (int fd, const struct iovec* parts, int count, off_t at), (fd, parts, count, at))
ON_FD(ssize_t, pwritev64, (int fd, const struct iovec* parts, int count, off64_t at), (fd, parts, count, at))
ON_FD(int, fsync, (int fd), (fd))
ON_FD(int, fdatasync, (int fd), (fd))
ON_FD(int, ftruncate, (int fd, off_t size), (fd, size))
ON_FD(int, ftruncate64, (int fd, off64_t size), (fd, size))
ON_FD(int, fallocate, (int fd, int mode, off_t at, off_t size), (fd, mode, at, size))
ON_FD(int, fallocate64, (int fd, int mode, off64_t at, off64_t size), (fd, mode, at, size))

// Calls on a path; where there are two, on the one that comes into being.
#define ON_PATH(name, parameters, arguments, made_in, made)  \
  int name parameters {                                      \
    if (fails_at(#name, made_in, made)) return -1;           \
    static const auto next = real<int(*) parameters>(#name); \
    return next arguments;                                   \
  }
ON_PATH(rename, (const char* from, const char* to), (from, to), AT_FDCWD, to)
ON_PATH(renameat, (int a, const char* from, int b, const char* to), (a, from, b, to), b, to)
ON_PATH(renameat2, (int a, const char* from, int b, const char* to, unsigned flags), (a, from, b, to, flags), b, to)
ON_PATH(link, (const char* from, const char* to), (from, to), AT_FDCWD, to)
ON_PATH(linkat, (int a, const char* from, int b, const char* to, int flags), (a, from, b, to, flags), b, to)
ON_PATH(symlink, (const char* target, const char* path), (target, path), AT_FDCWD, path)
ON_PATH(mkdir, (const char* path, mode_t mode), (path, mode), AT_FDCWD, path)
ON_PATH(mkdirat, (int a, const char* path, mode_t mode), (a, path, mode), a, path)

char* mkdtemp(char* pattern) {
  if (fails_at("mkdtemp", AT_FDCWD, pattern)) return nullptr;
  static const auto next = real<char* (*)(char*)>("mkdtemp");
  return next(pattern);
}

// What only a read-only disk refuses.
#define DELETING(name, parameters, arguments, directory)                        \
  int name parameters {                                                         \
    if (plan().error == EROFS && fails_at(#name, directory, path)) return -1;   \
    static const auto next = real<int(*) parameters>(#name);                    \
    return next arguments;                                                      \
  }
DELETING(unlink, (const char* path), (path), AT_FDCWD)
DELETING(rmdir, (const char* path), (path), AT_FDCWD)
DELETING(unlinkat, (int a, const char* path, int flags), (a, path, flags), a)
DELETING(utimensat, (int a, const char* path, const struct timespec* times, int flags), (a, path, times, flags), a)

// The wall clock. Durations are measured with others, which stay right.
int clock_gettime(clockid_t clock, struct timespec* now) noexcept {
  const int result = static_cast<int>(syscall(SYS_clock_gettime, clock, now));
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += shift_now();
  return result;
}

int gettimeofday(struct timeval* __restrict now, void* __restrict zone) noexcept {
  const int result = static_cast<int>(syscall(SYS_gettimeofday, now, zone));
  if (result == 0) now->tv_sec += shift_now();
  return result;
}

time_t time(time_t* out) noexcept {
  struct timeval now;
  gettimeofday(&now, nullptr);
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}

}  // extern "C"
#endif
