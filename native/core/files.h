// Whole files: mapped for reading, replaced by rename for writing.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cg {

/// A file's bytes, mapped read-only for as long as this lives.
class MappedFile {
 public:
  /// Throws cg::Error{code} when the file cannot be opened or is no regular file.
  MappedFile(const std::string& path, const std::string& code);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const char* data() const { return data_; }
  size_t size() const { return size_; }
  std::string_view text() const { return {data_, size_}; }

 private:
  const char* data_ = nullptr;
  size_t size_ = 0;
};

std::string read_file(const std::string& path, const std::string& code);

bool file_exists(const std::string& path);

/// Collects a file under a temporary name beside the real one; `commit` syncs it and renames it into place, so a reader sees the old file or the whole new one.
/// Throws cg::Error E_WRITE that names the real file.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* bytes, size_t size);
  void commit();

 private:
  [[noreturn]] void fail(const char* doing) const;

  std::string path_, temporary_;
  int fd_ = -1;
};

void write_file_atomic(const std::string& path, std::string_view text);

}  // namespace cg
