// The cuts against transformers' logits processors: fixtures/golden/engine/sampling, 420 cases of kept ids and probabilities.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/json.h"
#include "core/safetensors.h"
#include "core/sampling_rules.h"
#include "reference/vector_math.h"
#include "test/tap.h"

namespace cg::test {

namespace {

SampleParams params_of(const Json& p) {
  const auto value = [&](const char* key, double otherwise) { return float(p.find(key) ? p.find(key)->number() : otherwise); };
  return {value("temperature", 1), value("top_k", 0), value("top_p", 1), value("min_p", 0), value("repetition_penalty", 1), 0};
}

/// Probabilities after all cuts, 0 where cut; kept[j] as the library says it: the score is not −∞.
std::vector<float> distribution(std::vector<float> scores, std::vector<int32_t> seen, const SampleParams& p, std::vector<uint8_t>* kept) {
  const auto V = int64_t(scores.size());
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  std::vector<float> weight(scores.size());
  std::vector<int32_t> order(scores.size());
  apply_penalty(scores.data(), seen.data(), int64_t(seen.size()), p.repetition_penalty);
  apply_temperature(scores.data(), V, p.temperature);
  cut_top_k(scores.data(), V, p.top_k, order.data());
  const float top = reference::max_of(scores.data(), V);
  for (int64_t j = 0; j < V; ++j) weight[size_t(j)] = reference::exp_f(scores[size_t(j)] - top);
  cut_top_p(scores.data(), weight.data(), V, p.top_p, order.data());
  cut_min_p(scores.data(), weight.data(), V, p.min_p);
  double total = 0;
  for (const float w : weight) total += w;
  kept->clear();
  for (size_t j = 0; j < scores.size(); ++j) {
    kept->push_back(!std::isinf(scores[j]));
    weight[j] = float(weight[j] / total);
  }
  return weight;
}

}  // namespace

CG_TEST("sampling_rules", golden_sampling) {
  const char* given = std::getenv("CG_GOLDEN_ENGINE");
  const std::string dir = std::string(given ? given : "fixtures/golden/engine") + "/sampling/";
  const Json meta = read_json_file(dir + "meta.json", "E_GOLDEN");
  const Safetensors data(dir + "data.safetensors");
  int cases = 0, by_count = 0;
  double worst = 0;
  point("kept ids and probabilities are transformers'", [&](Point& p) {
    for (const Json& c : meta.find("cases")->items) {
      const std::string key = c.find("key")->text, base = key.substr(0, key.rfind('.'));
      const auto logits = values_as_float(*data.find(base + ".logits"));
      std::vector<int32_t> seen;
      for (const double id : values_as_double(*data.find(base + ".previous"))) seen.push_back(int32_t(id));
      std::vector<uint8_t> kept;
      auto got = distribution(logits, seen, params_of(*meta.find("parameters")->find(key.substr(key.rfind('.') + 1))), &kept);
      auto want = values_as_float(*data.find(key + ".probs"));
      const auto want_kept = values_as_double(*data.find(key + ".kept"));
      ++cases;
      if (!c.find("same_set_by_definition")->boolean) {  // the library's choice among equal ids is arbitrary, or its float32 sum cuts one id earlier
        ++by_count;
        const auto count = std::count(kept.begin(), kept.end(), 1);
        const double library = c.find("kept")->number(), definition = c.find("kept_by_definition")->number();
        p.expect(double(count) == library || double(count) == definition, key + " keeps " + std::to_string(count));
        if (double(count) != library) continue;
        std::sort(got.begin(), got.end());
        std::sort(want.begin(), want.end());
      } else {
        p.expect(std::equal(kept.begin(), kept.end(), want_kept.begin(), want_kept.end()), key + " keeps other ids");
      }
      for (size_t j = 0; j < got.size(); ++j) worst = std::max(worst, std::abs(double(got[j]) - double(want[j])));
    }
    p.expect(cases > 0, "no case found");
    p.expect(worst <= 2e-6, "probabilities are off by " + std::to_string(worst));
    std::printf("  # %d cases, %d of them by count; probabilities off by at most %.2g\n", cases, by_count, worst);
  });
}

}  // namespace cg::test
