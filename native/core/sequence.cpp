#include "core/sequence.h"

#include <cmath>

#include "core/error.h"
#include "core/model.h"

namespace cg {

void check_sequence(const Model& model, const Sequence& s) {
  const auto fail = [](const std::string& what) { throw Error("E_SHAPE", what); };
  for (const int32_t id : s.ids) model.check_id(id);
  int32_t last = 1;
  for (const auto& [begin, end] : s.spans) {
    if (begin < 1) fail("a span begins at token " + std::to_string(begin) + ": the first token has no predictor");
    if (begin < last || end <= begin || end > static_cast<int32_t>(s.ids.size()))
      fail("span [" + std::to_string(begin) + ", " + std::to_string(end) + ") of a sequence of " + std::to_string(s.ids.size()) +
           " tokens is empty, out of order or outside");
    last = end;
  }
  if (!(s.temperature > 0) || !std::isfinite(s.temperature)) fail("a sequence's temperature must be above 0 (1 for greedy rollouts)");
  if (s.start < 0) fail("a sequence starts before position 0");
  if (s.start + s.rows() > model.config.max_positions)
    throw Error("E_CONTEXT", "a sequence of " + std::to_string(s.ids.size()) + " tokens at position " + std::to_string(s.start) +
                                 " does not fit the model's context of " + std::to_string(model.config.max_positions));
}

}  // namespace cg
