#include "core/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/error.h"

namespace cg {
namespace {

[[noreturn]] void fail_with_errno(const std::string& path, const char* doing, const std::string& code) {
  throw Error(code, path + ": cannot " + doing + ": " + std::strerror(errno));
}

// What a person can do, in the words of src/record/write-failure.ts.
std::string advice(int error, const char* doing) {
  switch (error) {
    case ENOSPC: return "no space left on the device: free some";
    case EDQUOT: return "the disk quota is used up: free some space";
    case EROFS: return "the file system is read-only: mount it writable, or name another place";
    case EIO: return "the disk failed (EIO): see the system log, and run it again";
    case EACCES:
    case EPERM: return "permission denied: make it writable, or name another place";
    case ENOENT: return "its directory is not there: make it, and run it again";
    default: return std::string("cannot ") + doing + ": " + std::strerror(error) + ": name another place";
  }
}

}  // namespace

MappedFile::MappedFile(const std::string& path, const std::string& code) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail_with_errno(path, "open", code);
  struct stat info;
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    throw Error(code, path + ": not a regular file");
  }
  size_ = static_cast<size_t>(info.st_size);
  if (size_ > 0) {
    void* map = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED) {
      const int saved = errno;
      ::close(fd);
      errno = saved;
      fail_with_errno(path, "map", code);
    }
    data_ = static_cast<const char*>(map);
  }
  ::close(fd);
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<char*>(data_), size_);
}

std::string read_file(const std::string& path, const std::string& code) {
  const MappedFile file(path, code);
  return std::string(file.text());
}

bool file_exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

AtomicFile::AtomicFile(const std::string& path) : path_(path), temporary_(path + ".tmp." + std::to_string(::getpid())) {
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) fail("create");
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::fail(const char* doing) const {
  const int error = errno;
  throw Error("E_WRITE", path_ + ": " + advice(error, doing));
}

void AtomicFile::write(const void* bytes, size_t size) {
  const char* at = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t n = ::write(fd_, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("write");
    at += n;
    size -= static_cast<size_t>(n);
  }
}

void AtomicFile::commit() {
  if (::fsync(fd_) != 0) fail("sync");
  const int closed = ::close(fd_);  // a file system over the network may say only now that there is no room
  fd_ = -1;
  if (closed != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary_.c_str());
    errno = error;
    fail(closed != 0 ? "close" : "rename into place");
  }
}

void write_file_atomic(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

}  // namespace cg
