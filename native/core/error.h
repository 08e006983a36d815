// One error type for everything a user can cause. A broken invariant is not an Error: it aborts with a message that says it is a bug.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace cg {

/// What went wrong, said to a user: `code` is a stable upper-case word (E_CHECKPOINT, E_SHAPE, E_MEMORY, E_NAN …), `what()` names the thing and what to do.
class Error : public std::runtime_error {
 public:
  Error(std::string code, const std::string& message) : std::runtime_error(message), code_(std::move(code)) {}
  const std::string& code() const { return code_; }

 private:
  std::string code_;
};

[[noreturn]] inline void bug(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "cg: this is a bug, please report it: %s:%d: %s does not hold\n", file, line, condition);
  std::abort();
}

}  // namespace cg

#define CG_INVARIANT(condition) \
  do { \
    if (!(condition)) ::cg::bug(__FILE__, __LINE__, #condition); \
  } while (0)
