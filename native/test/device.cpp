#include "test/device.h"

#include <cmath>
#include <limits>
#include <stdexcept>

#include "core/dtype.h"
#include "core/rng.h"
#include "reference/isa.h"
#include "reference/threads.h"
#include "test/tap.h"

namespace cg::test {

namespace {
std::unique_ptr<Backend> make_backend(const std::string& name, int threads, DType precision) {
  if (name == "reference") return make_reference_backend(threads, precision);
  if (name == "reference-remote") return make_reference_remote_backend(threads, 20, precision);
  if (name == "cpu") return make_cpu_backend(threads, precision);
  throw std::invalid_argument("no backend \"" + name + "\"; there are reference, reference-remote and cpu");
}

struct Variant {
  std::string name;
  std::unique_ptr<Backend> backend;
  reference::Isa isa;
};

std::string primary_name = "reference";

std::vector<Variant> make_variants(DType precision) {
  reference::Threads::least_work = 0;  // shapes here are small: share all of them
  std::vector<Variant> list;
  const reference::Isa best = reference::best_isa();
  const auto add = [&](const std::string& as, const std::string& name, int threads, reference::Isa isa) {
    list.push_back({as, make_backend(name, threads, precision), isa});
  };
  add(primary_name, primary_name, 1, best);
  add("reference with 2 threads", "reference", 2, best);
  add("reference with 3 threads", "reference", 3, best);
  add("reference-remote", "reference-remote", 2, best);
  add("cpu", "cpu", 1, best);
  add("cpu with 3 threads", "cpu", 3, best);
  for (const auto isa : {reference::Isa::baseline, reference::Isa::avx2, reference::Isa::avx512}) {
    if (isa >= best) continue;
    for (const std::string name : {"reference", "cpu"}) add(name + " in " + reference::name_of(isa), name, 1, isa);
  }
  return list;
}

std::vector<Variant>& variants(DType precision) {
  static std::vector<Variant> exact = make_variants(DType::f32), brain = make_variants(DType::bf16);
  return precision == DType::bf16 ? brain : exact;
}
}  // namespace

void choose_primary(const std::string& name) {
  make_backend(name, 1, DType::f32);
  primary_name = name;
}

Backend& primary(DType precision) { return *variants(precision)[0].backend; }

std::vector<float> everywhere(Point& p, const std::function<std::vector<float>(Device&)>& op, DType precision) {
  std::vector<float> first;
  const std::vector<Variant>& all = variants(precision);
  for (const Variant& variant : all) {
    if (variant.backend->logprob_kind() != primary(precision).logprob_kind()) continue;
    reference::use_isa(variant.isa);
    Device device(*variant.backend);
    const std::vector<float> got = op(device);
    if (&variant == &all[0]) first = got;
    else p.same(variant.name, got, first);
  }
  reference::use_isa(reference::best_isa());
  return first;
}

std::vector<float> as(DType precision, std::vector<float> values) {
  if (precision == DType::bf16)
    for (float& v : values) v = widen_bf16(round_to_bf16(v));
  return values;
}

Tensor Device::make(std::vector<int64_t> shape, DType dtype) {
  Tensor t;
  t.rank = int(shape.size());
  t.dtype = dtype;
  int64_t dense = 1;
  for (int i = t.rank - 1; i >= 0; --i) {
    t.shape[size_t(i)] = shape[size_t(i)];
    t.strides[size_t(i)] = dense;
    dense *= shape[size_t(i)];
  }
  constexpr int64_t margin = 64;
  t.buffer = backend.arena(t.bytes() + 2 * margin);
  buffers_.push_back(t.buffer);
  Tensor whole = t;
  whole.rank = 1;
  whole.shape = {t.size() + 2 * margin / size_of(dtype)};
  whole.strides = {1};
  backend.fill(*queue_, whole, dtype == DType::f32 ? std::numeric_limits<float>::quiet_NaN() : 2147483520.0f);
  t.offset = margin;
  return t;
}

Weight Device::weight(const std::vector<float>& values, int64_t n, int64_t k) {
  const int64_t shape[] = {n, k};
  const Weight w = backend.load_weight("test", values.data(), DType::f32, std::span(shape, k > 0 ? 2 : 1));
  weights_.push_back(w);
  return w;
}

std::vector<float> random(int64_t n, uint64_t seed) {
  std::vector<float> values(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) values[size_t(i)] = float(2 * uniform({seed, 0, uint64_t(i)}) - 1);
  return values;
}

}  // namespace cg::test
