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

AtomicFile::AtomicFile(const std::string& path, const std::string& code) : path_(path), temporary_(path + ".tmp." + std::to_string(::getpid())), code_(code) {
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) fail("create");
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::fail(const char* doing) const { fail_with_errno(temporary_, doing, code_); }

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
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename into place");
  ::close(fd_);
  fd_ = -1;
}

void write_file_atomic(const std::string& path, std::string_view text, const std::string& code) {
  AtomicFile file(path, code);
  file.write(text.data(), text.size());
  file.commit();
}

}  // namespace cg
