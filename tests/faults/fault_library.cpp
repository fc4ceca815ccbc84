// A library to be loaded before a program (LD_PRELOAD), between it and the system's calls on files and memory. It
// counts calls by kind, makes one of them fail, and writes down what would reach a disk. tests/faults.sh and
// tests/faults/power_loss.py use it.
//
//   ENGRAM_FAULT=KIND:N:ERROR[+]  the N-th call of this kind, counted from 1, fails; with + all later ones too. ERROR:
//                                 ENOSPC, EIO, EINTR, EMFILE, ENFILE, ENOMEM, EACCES; half (of a write or read half of
//                                 the bytes are done, as the system may); KILL (the process is killed before the call);
//                                 KILLHALF (of a write half is done, then the process is killed)
//   ENGRAM_FAULT_LIST=FILE        a line for every call: kind, name of the call, what it is about
//   ENGRAM_FAULT_RECORD=FILE      what changes files: see `record`
//   ENGRAM_FAULT_MEMORY=BYTES     kind memory: allocations of at least so many bytes [65536]
//
// Kinds: write, read, flush, rename, open, map, truncate, close, memory, folder, remove, print.

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "tests/faults/fault_plan.hpp"

namespace {

using engram::faults::Kind;
using engram::faults::plan;
using engram::faults::Verdict;

/// The function that would have been called without this library.
template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

/// Counts a call on a path. True: it has to fail, and errno says with what.
bool fails(Kind kind, const char* name, const char* about) {
  const Verdict verdict = plan().ask(kind, name, about);
  if (verdict == Verdict::pass || verdict == Verdict::half) return false;
  return true;
}

/// The same of a call on an open file.
Verdict ask(Kind kind, const char* name, int descriptor) {
  char link[64], path[512] = "";
  if (plan().lists()) {
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    const ssize_t length = ::readlink(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
  }
  return plan().ask(kind, name, path);
}

/// How many of the bytes a call is to do.
std::size_t share(Verdict verdict, std::size_t bytes) {
  return verdict == Verdict::half || verdict == Verdict::half_and_kill ? (bytes + 1) / 2 : bytes;
}

void kill_if(Verdict verdict) {
  if (verdict == Verdict::half_and_kill) ::kill(::getpid(), SIGKILL);
}

// ---- the record of what changes files ----

struct Record {
  int file = -1;
  std::mutex guard;
  Record() {
    const char* const path = std::getenv("ENGRAM_FAULT_RECORD");
    if (path != nullptr)
      file = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  }
};
Record& record() {
  static Record all;
  return all;
}
bool records() { return record().file >= 0; }

/// Every line begins with a word and has numbers and, at its end, paths; of a write its bytes follow.
void put(const char* line, const void* bytes = nullptr, std::size_t count = 0) {
  const std::lock_guard lock(record().guard);
  ::syscall(SYS_write, record().file, line, std::strlen(line));
  for (const char* at = static_cast<const char*>(bytes); count > 0;) {
    const long done = ::syscall(SYS_write, record().file, at, count);
    if (done <= 0) ::abort();
    at += done;
    count -= static_cast<std::size_t>(done);
  }
}

unsigned long inode_of(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 && (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) ? status.st_ino : 0;
}

bool is_there(int folder, const char* path) {
  struct stat status {};
  return ::fstatat(folder, path, &status, 0) == 0;
}

/// "open INODE MADE CUT PATH": it may have been made, or cut to nothing.
void record_open(int descriptor, bool was_there, int flags, const char* path) {
  if (!records() || descriptor < 0) return;
  if ((flags & O_ACCMODE) == O_RDONLY && (flags & O_DIRECTORY) == 0) return;
  const unsigned long inode = inode_of(descriptor);
  if (inode == 0) return;
  char line[1200];
  std::snprintf(line, sizeof line, "open %lu %d %d %s\n", inode, was_there ? 0 : 1, (flags & O_TRUNC) != 0 ? 1 : 0,
                path);
  put(line);
}

/// "write INODE OFFSET COUNT", and the bytes.
void record_write(int descriptor, std::uint64_t offset, const void* bytes, ssize_t count) {
  if (!records() || count <= 0) return;
  const unsigned long inode = inode_of(descriptor);
  if (inode == 0) return;
  char line[100];
  std::snprintf(line, sizeof line, "write %lu %llu %zd\n", inode, static_cast<unsigned long long>(offset), count);
  put(line, bytes, static_cast<std::size_t>(count));
}

void record_number(const char* word, int descriptor, long long number) {
  if (!records()) return;
  const unsigned long inode = inode_of(descriptor);
  if (inode == 0) return;
  char line[100];
  std::snprintf(line, sizeof line, "%s %lu %lld\n", word, inode, number);
  put(line);
}

/// "rename FROM\tTO", "unlink PATH", "mkdir PATH".
void record_paths(const char* word, const char* path, const char* to = nullptr) {
  if (!records()) return;
  char line[2400];
  std::snprintf(line, sizeof line, "%s %s%s%s\n", word, path, to != nullptr ? "\t" : "", to != nullptr ? to : "");
  put(line);
}

std::uint64_t place_before(int descriptor, ssize_t count) {
  const off_t now = ::lseek(descriptor, 0, SEEK_CUR);
  return now >= count ? static_cast<std::uint64_t>(now - count) : 0;
}

int open_with(const char* name, int folder, const char* path, int flags, mode_t mode) {
  if (fails(Kind::open, name, path)) return -1;
  const bool was_there = !records() || is_there(folder, path);
  const int descriptor = static_cast<int>(::syscall(SYS_openat, folder, path, flags, mode));
  record_open(descriptor, was_there, flags, path);
  return descriptor;
}

}  // namespace

// What the C library declares without throw() may not have it here.
extern "C" {

#define MODE_OF_OPEN                            \
  mode_t mode = 0;                              \
  if ((flags & (O_CREAT | __O_TMPFILE)) != 0) { \
    va_list rest;                               \
    va_start(rest, flags);                      \
    mode = va_arg(rest, mode_t);                \
    va_end(rest);                               \
  }

int open(const char* path, int flags, ...) {
  MODE_OF_OPEN
  return open_with("open", AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  MODE_OF_OPEN
  return open_with("open", AT_FDCWD, path, flags, mode);
}
int openat(int folder, const char* path, int flags, ...) {
  MODE_OF_OPEN
  return open_with("openat", folder, path, flags, mode);
}
int openat64(int folder, const char* path, int flags, ...) {
  MODE_OF_OPEN
  return open_with("openat", folder, path, flags, mode);
}

FILE* fopen(const char* path, const char* mode) {
  if (fails(Kind::open, "fopen", path)) return nullptr;
  const bool was_there = !records() || is_there(AT_FDCWD, path);
  static const auto real = next<FILE*(const char*, const char*)>("fopen");
  FILE* const file = real(path, mode);
  const int flags = mode[0] == 'r' ? (std::strchr(mode, '+') != nullptr ? O_RDWR : O_RDONLY)
                                   : O_WRONLY | (mode[0] == 'w' ? O_TRUNC : 0);
  if (file != nullptr) record_open(::fileno(file), was_there, flags, path);
  return file;
}
FILE* fopen64(const char* path, const char* mode) { return fopen(path, mode); }

DIR* opendir(const char* path) {
  if (fails(Kind::open, "opendir", path)) return nullptr;
  static const auto real = next<DIR*(const char*)>("opendir");
  return real(path);
}

ssize_t write(int descriptor, const void* bytes, size_t count) {
  const Verdict verdict = ask(Kind::write, "write", descriptor);
  if (verdict == Verdict::fail) return -1;
  const ssize_t done = ::syscall(SYS_write, descriptor, bytes, share(verdict, count));
  kill_if(verdict);
  if (records() && done > 0) record_write(descriptor, place_before(descriptor, done), bytes, done);
  return done;
}

ssize_t pwrite(int descriptor, const void* bytes, size_t count, off_t offset) {
  const Verdict verdict = ask(Kind::write, "pwrite", descriptor);
  if (verdict == Verdict::fail) return -1;
  const ssize_t done = ::syscall(SYS_pwrite64, descriptor, bytes, share(verdict, count), offset);
  kill_if(verdict);
  record_write(descriptor, static_cast<std::uint64_t>(offset), bytes, done);
  return done;
}
ssize_t pwrite64(int descriptor, const void* bytes, size_t count, off64_t offset) {
  return pwrite(descriptor, bytes, count, offset);
}

ssize_t writev(int descriptor, const struct iovec* parts, int count) {
  const Verdict verdict = ask(Kind::write, "writev", descriptor);
  if (verdict == Verdict::fail) return -1;
  // Half of several parts: the first alone.
  const ssize_t done = ::syscall(SYS_writev, descriptor, parts, static_cast<int>(share(verdict, count)));
  kill_if(verdict);
  if (records() && done > 0) {
    std::uint64_t at = place_before(descriptor, done);
    ssize_t left = done;
    for (int i = 0; i < count && left > 0; ++i) {
      const ssize_t here = std::min<ssize_t>(left, static_cast<ssize_t>(parts[i].iov_len));
      record_write(descriptor, at, parts[i].iov_base, here);
      at += static_cast<std::uint64_t>(here);
      left -= here;
    }
  }
  return done;
}

ssize_t read(int descriptor, void* bytes, size_t count) {
  const Verdict verdict = ask(Kind::read, "read", descriptor);
  if (verdict == Verdict::fail) return -1;
  return ::syscall(SYS_read, descriptor, bytes, share(verdict, count));
}
ssize_t pread(int descriptor, void* bytes, size_t count, off_t offset) {
  const Verdict verdict = ask(Kind::read, "pread", descriptor);
  if (verdict == Verdict::fail) return -1;
  return ::syscall(SYS_pread64, descriptor, bytes, share(verdict, count), offset);
}
ssize_t pread64(int descriptor, void* bytes, size_t count, off64_t offset) {
  return pread(descriptor, bytes, count, offset);
}

int fsync(int descriptor) {
  if (ask(Kind::flush, "fsync", descriptor) == Verdict::fail) return -1;
  const int code = static_cast<int>(::syscall(SYS_fsync, descriptor));
  if (code == 0) record_number("flush", descriptor, 0);
  return code;
}
int fdatasync(int descriptor) {
  if (ask(Kind::flush, "fdatasync", descriptor) == Verdict::fail) return -1;
  const int code = static_cast<int>(::syscall(SYS_fdatasync, descriptor));
  if (code == 0) record_number("flush", descriptor, 0);
  return code;
}

int ftruncate(int descriptor, off_t length) noexcept {
  if (ask(Kind::truncate, "ftruncate", descriptor) == Verdict::fail) return -1;
  const int code = static_cast<int>(::syscall(SYS_ftruncate, descriptor, length));
  if (code == 0) record_number("cut", descriptor, length);
  return code;
}
int ftruncate64(int descriptor, off64_t length) noexcept { return ftruncate(descriptor, length); }

int close(int descriptor) {
  // A descriptor is given back even where closing says that something failed.
  const bool failed = ask(Kind::close, "close", descriptor) == Verdict::fail;
  const int error = errno;
  const int code = static_cast<int>(::syscall(SYS_close, descriptor));
  if (!failed) return code;
  errno = error;
  return -1;
}

int rename(const char* from, const char* to) noexcept {
  if (fails(Kind::rename, "rename", from)) return -1;
  const int code = static_cast<int>(::syscall(SYS_rename, from, to));
  if (code == 0) record_paths("rename", from, to);
  return code;
}

int mkdir(const char* path, mode_t mode) noexcept {
  if (fails(Kind::folder, "mkdir", path)) return -1;
  const int code = static_cast<int>(::syscall(SYS_mkdir, path, mode));
  if (code == 0) record_paths("mkdir", path);
  return code;
}

int unlink(const char* path) noexcept {
  if (fails(Kind::remove, "unlink", path)) return -1;
  const int code = static_cast<int>(::syscall(SYS_unlink, path));
  if (code == 0) record_paths("unlink", path);
  return code;
}

int remove(const char* path) noexcept {
  if (fails(Kind::remove, "remove", path)) return -1;
  const int code = static_cast<int>(::syscall(SYS_unlink, path));
  if (code == 0) record_paths("unlink", path);
  if (code != 0 && errno == EISDIR) return static_cast<int>(::syscall(SYS_rmdir, path));
  return code;
}

void* mmap(void* address, size_t bytes, int protection, int flags, int descriptor, off_t offset) noexcept {
  if (fails(Kind::map, "mmap", (flags & MAP_ANONYMOUS) != 0 ? "memory" : "a file")) return MAP_FAILED;
  return reinterpret_cast<void*>(::syscall(SYS_mmap, address, bytes, protection, flags, descriptor, offset));
}
void* mmap64(void* address, size_t bytes, int protection, int flags, int descriptor, off64_t offset) noexcept {
  return mmap(address, bytes, protection, flags, descriptor, offset);
}

// What the program prints is handed over here.
int fflush(FILE* file) {
  if (file == stdout && fails(Kind::print, "fflush", "stdout")) return EOF;
  static const auto real = next<int(FILE*)>("fflush");
  return real(file);
}

// ---- memory: glibc's own names serve before anything can be looked up ----

void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* old, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

static bool lacks_memory(const char* name, size_t bytes) {
  return engram::faults::is_large(bytes) && fails(Kind::memory, name, "");
}

void* malloc(size_t bytes) noexcept { return lacks_memory("malloc", bytes) ? nullptr : __libc_malloc(bytes); }
void* calloc(size_t count, size_t bytes) noexcept {
  return lacks_memory("calloc", count * bytes) ? nullptr : __libc_calloc(count, bytes);
}
void* realloc(void* old, size_t bytes) noexcept {
  return lacks_memory("realloc", bytes) ? nullptr : __libc_realloc(old, bytes);
}
void* memalign(size_t alignment, size_t bytes) noexcept {
  return lacks_memory("memalign", bytes) ? nullptr : __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  return lacks_memory("aligned_alloc", bytes) ? nullptr : __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, size_t alignment, size_t bytes) noexcept {
  void* const found = lacks_memory("posix_memalign", bytes) ? nullptr : __libc_memalign(alignment, bytes);
  if (found == nullptr) return ENOMEM;
  *memory = found;
  return 0;
}

}  // extern "C"
