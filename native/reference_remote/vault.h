// Memory that can be touched only while it is open.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

namespace cg::reference_remote {

/// Whole pages, PROT_NONE but between `open` and `close`: a stray read of a device tensor is a segmentation fault.
class Vault {
 public:
  ~Vault();
  /// Zeroed; nullptr when the system has none. Never while open.
  void* allocate(int64_t bytes);
  void release(void* data, int64_t bytes);
  void open() { protect(true); }
  void close() { protect(false); }

 private:
  struct Block {
    void* data;
    size_t bytes;
  };
  void protect(bool accessible);
  std::mutex mutex_;
  std::vector<Block> blocks_;
};

/// Opens a vault for a scope.
class Opened {
 public:
  explicit Opened(Vault& vault) : vault_(vault) { vault_.open(); }
  ~Opened() { vault_.close(); }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

 private:
  Vault& vault_;
};

}  // namespace cg::reference_remote
