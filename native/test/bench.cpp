// native-bench [--only reference|cpu] [--dtype fp32|bf16] [--threads N] [--isa scalar|avx2|avx512|avx512bf16]: GFLOP/s of the backend's ops at the sizes of
// small models, as a share of what the cores can do at most (fp32 multiply-adds in registers, whatever the precision), and for few rows the weights' bytes per
// second.
//
// Best of several runs. A multiply and an add count as two flops; masked pairs of attention and recomputed scores are not counted, the
// recomputed logits of head_backward are.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <time.h>

#include "core/backend.h"
#include "core/error.h"
#include "core/rng.h"
#include "reference/isa.h"
#include "test/peak.h"

namespace {

using namespace cg;

/// One thread is timed by its CPU time, which a busy machine does not spoil; several by the wall clock.
clockid_t clock_used = CLOCK_MONOTONIC;
double now() {
  timespec t;
  clock_gettime(clock_used, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

/// Flops per second of `threads` cores at their best, from one short look. The clock of a shared machine wanders, so ops are compared with looks between their
/// runs.
double peak(double (*steps)(int64_t), int threads) {
  const double start = now(), flops = steps(20000);
  return threads * flops / (now() - start);
}
int threads_used = 1;

struct Bench {
  Backend& backend;
  std::unique_ptr<Queue> queue = backend.queue();
  std::vector<BufferId> buffers{};
  ~Bench() {
    for (const BufferId id : buffers) backend.release(id);
  }

  Tensor make(std::vector<int64_t> shape, DType dtype = DType::f32) {
    Tensor t;
    t.rank = int(shape.size());
    t.dtype = dtype;
    int64_t dense = 1;
    for (int i = t.rank - 1; i >= 0; --i) {
      t.shape[size_t(i)] = shape[size_t(i)];
      t.strides[size_t(i)] = dense;
      dense *= shape[size_t(i)];
    }
    t.buffer = backend.arena(t.bytes());
    buffers.push_back(t.buffer);
    return t;
  }
  static std::vector<float> values(int64_t n) {
    std::vector<float> x(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) x[size_t(i)] = float(uniform({1, 2, uint64_t(i)}) - 0.5);
    return x;
  }
  Tensor random(std::vector<int64_t> shape) {
    const Tensor t = make(shape);
    backend.upload(*queue, values(t.size()).data(), t);
    return t;
  }
  Tensor ints(const std::vector<int32_t>& list) {
    const Tensor t = make({int64_t(list.size())}, DType::i32);
    backend.upload(*queue, list.data(), t);
    return t;
  }
  Weight weight(int64_t n, int64_t k) {
    const int64_t shape[] = {n, k};
    return backend.load_weight("w", values(n * k).data(), DType::f32, shape);
  }
  Tensor workspace(Op op, int64_t m, int64_t n, int64_t k) { return make({(backend.workspace(op, m, n, k) + 3) / 4}); }

  /// `bytes`: of weights that an op reads once, for ops that memory bounds.
  void time(const std::string& what, double flops, const std::function<void()>& op, double bytes = 0) {
    double best = 1e9, total = 0, most = 0;
    for (int run = 0; run < 200 && (run < 5 || total < 0.25); ++run) {
      most = std::max(most, peak(test::fp32_steps, threads_used));
      const double start = now();
      op();
      backend.wait(*queue);
      const double seconds = now() - start;
      best = std::min(best, seconds);
      total += seconds;
    }
    std::printf("%-58s %8.1f GFLOP/s %3.0f %% %10.1f us", what.c_str(), flops / best / 1e9, 100 * flops / best / most, best * 1e6);
    if (bytes > 0) std::printf(" %6.1f GB/s", bytes / best / 1e9);
    std::printf("\n");
    std::fflush(stdout);
  }
};

template <class... Sizes>
std::string text(const char* format, Sizes... sizes) {
  char line[120];
  std::snprintf(line, sizeof line, format, int(sizes)...);
  return line;
}

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown CPU";
}

void linear(Backend& backend, DType dtype, int64_t rows, int64_t n, int64_t k) {
  Bench b{backend};
  const std::string shape = text(" %dx%dx%d", rows, n, k);
  const Tensor x = b.random({rows, k}), y = b.random({rows, n}), none = b.make({1});
  const Weight w = b.weight(n, k);
  const double flops = 2.0 * double(rows * n * k), bytes = rows <= 8 ? double(n * k * size_of(dtype)) : 0;
  b.time("matmul" + shape, flops, [&] { backend.matmul(*b.queue, x, w, Weight{}, y, false, none); }, bytes);
  if (rows >= 64) b.time("matmul_backward" + shape, flops, [&] { backend.matmul_backward(*b.queue, y, w, x, false, none); });
  backend.release(w);
}

void lora(Backend& backend, int64_t rows, int64_t n, int64_t k, int64_t rank) {
  Bench b{backend};
  const std::string ranked = text(" %dx%dx%d rank %d", rows, n, k, rank);
  const Tensor x = b.random({rows, k}), y = b.random({rows, n}), a = b.random({rank, k}), lb = b.random({n, rank}), h = b.random({rows, rank}),
               da = b.make({rank, k}), db = b.make({n, rank});
  const double small_k = 2.0 * double(rows * rank * k), small_n = 2.0 * double(rows * rank * n);
  const Tensor none = b.make({1});
  if (rows >= 256) {
    b.time("lora_gradient dA" + ranked, small_k, [&] { backend.lora_gradient(*b.queue, h, x, 1, da, none); });
    b.time("lora_gradient dB" + ranked, small_n, [&] { backend.lora_gradient(*b.queue, y, h, 1, db, none); });
    b.time("lora backward" + ranked, small_k + small_n, [&] {
      backend.lora_expand_backward(*b.queue, y, lb, 1, h);
      backend.lora_shrink_backward(*b.queue, h, a, x);
    });
  }
  b.time("lora shrink, expand" + ranked, small_k + small_n, [&] {
    backend.lora_shrink(*b.queue, x, a, h);
    backend.lora_expand(*b.queue, h, lb, 1e-3f, y);
  });
}

void head(Backend& backend, int64_t rows, int64_t vocab, int64_t hidden) {
  Bench b{backend};
  const std::string shape = text(" %dx%dx%d", rows, vocab, hidden);
  const Tensor h = b.random({rows, hidden}), dh = b.make({rows, hidden}), logp = b.make({rows}), coefficient = b.random({rows}), temperature = b.make({rows});
  backend.fill(*b.queue, temperature, 1);
  std::vector<int32_t> index, target;
  for (int64_t i = 0; i < rows; ++i) index.push_back(int32_t(i)), target.push_back(int32_t(i * 97 % vocab));
  const LossEntries entries{b.ints(index), b.ints(target), temperature};
  const Weight w = b.weight(vocab, hidden);
  const Tensor workspace = b.workspace(Op::head_backward, rows, vocab, hidden);
  const double flops = 2.0 * double(rows * vocab * hidden);
  b.time("head_logp" + shape, flops, [&] { backend.head_logp(*b.queue, h, w, vocab, entries, logp, Tensor{}, workspace); });
  b.time("head_backward" + shape, 2 * flops, [&] { backend.head_backward(*b.queue, h, w, vocab, entries, coefficient, dh, workspace); });
  backend.release(w);
}

/// `sequences` branches of `own` tokens on one prefix; training, or (own = 1) decoding over pages.
void attention(Backend& backend, int64_t prefix, int64_t sequences, int64_t own, int64_t heads, int64_t kv_heads, int64_t d, bool decode) {
  Bench b{backend};
  std::vector<int32_t> position, first, table, gather, end;
  double pairs = 0;
  const int64_t R = prefix + sequences * own;
  for (int64_t i = 0; i < R; ++i) {
    const int64_t s = i < prefix ? 0 : (i - prefix) / own, at = i < prefix ? i : prefix + (i - prefix) % own;
    position.push_back(int32_t(at));
    first.push_back(0);
    table.push_back(int32_t(s * (prefix + own)));
    end.push_back(int32_t(i < prefix ? R : prefix + (s + 1) * own));
  }
  for (int64_t s = 0; s < sequences; ++s)
    for (int64_t j = 0; j < prefix + own; ++j) gather.push_back(int32_t(j < prefix ? j : s * own + j));
  const int64_t from = decode ? prefix : 0;
  for (int64_t i = from; i < R; ++i) pairs += position[size_t(i)] + 1;
  const Tensor q = b.random({R, heads, d}), k = b.random({R, kv_heads, d}), v = b.random({R, kv_heads, d}), out = b.make({R, heads, d}),
               lse = b.make({R, heads});
  AttentionTable t{b.ints(position), b.ints(first), b.ints(table), b.ints(gather), b.ints(end)};
  const double flops = 4 * pairs * double(heads * d);
  const std::string shape = text(" %d+%dx%d, heads %d/%dx%d", prefix, sequences, own, heads, kv_heads, d);
  const Tensor none = b.make({1});
  if (decode) {
    for (Tensor* x : {&t.position, &t.first, &t.table}) *x = x->rows(from, R);
    return b.time("attention, decode" + shape, flops, [&] { backend.attention(*b.queue, q.rows(from, R), k, v, t, out.rows(from, R), Tensor{}, none); });
  }
  b.time("attention" + shape, flops, [&] { backend.attention(*b.queue, q, k, v, t, out, lse, none); });
  const Tensor dq = b.make({R, heads, d}), dk = b.make({R, kv_heads, d}), dv = b.make({R, kv_heads, d}), dout = b.random({R, heads, d}),
               workspace = b.workspace(Op::attention_backward, R, heads, d);
  b.time("attention_backward" + shape, 2 * flops, [&] { backend.attention_backward(*b.queue, dout, q, k, v, out, lse, t, dq, dk, dv, workspace); });
}

void sampling(Backend& backend, int64_t rows, int64_t vocab, int64_t hidden, float top_k, float top_p) {
  Bench b{backend};
  const Tensor h = b.random({rows, hidden}), ids = b.make({rows}, DType::i32), logp = b.make({rows});
  std::vector<int32_t> index, offset(size_t(rows + 1));
  std::vector<float> params;
  std::vector<uint64_t> keys;
  for (int64_t i = 0; i < rows; ++i) {
    index.push_back(int32_t(i));
    params.insert(params.end(), {1, top_k, top_p, 0, 1, 0});
    keys.insert(keys.end(), {1, uint64_t(i), 3});
  }
  const Tensor params_t = b.make({rows, SampleParams::fields}), keys_t = b.make({rows, 3}, DType::u64);
  backend.upload(*b.queue, params.data(), params_t);
  backend.upload(*b.queue, keys.data(), keys_t);
  const SampleRows list{b.ints(index), params_t, keys_t, b.ints(offset), b.make({0}, DType::i32)};
  const Weight w = b.weight(vocab, hidden);
  const Tensor workspace = b.workspace(Op::sample, rows, vocab, hidden);
  const char* cuts = top_k > 0 ? ", top-k and top-p" : top_p < 1 ? ", top-p" : "";
  b.time(text("sample %dx%dx%d", rows, vocab, hidden) + cuts, 2.0 * double(rows * vocab * hidden),
         [&] { backend.sample(*b.queue, h, w, vocab, list, ids, logp, workspace); });
  backend.release(w);
}

void run(const std::string& name, DType dtype, int threads) {
  const auto backend = name == "cpu" ? make_cpu_backend(threads, dtype) : make_reference_backend(threads, dtype);
  clock_used = threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  threads_used = threads;
  double fused = 0, dot = 0;
  for (int i = 0; i < 200; ++i) {
    fused = std::max(fused, peak(test::fp32_steps, threads));
    dot = std::max(dot, peak(test::dot_steps, threads));
  }
  std::printf("\n%s: %s, %s, %s time; peak %.0f GFLOP/s", cpu_name().c_str(), backend->description().c_str(), dtype == DType::bf16 ? "bf16" : "fp32",
              threads == 1 ? "CPU" : "wall", fused / 1e9);
  dot > 0 ? std::printf(", VDPBF16PS %.0f\n", dot / 1e9) : std::printf("\n");
  const int64_t shapes[][2] = {{384, 144}, {144, 384}, {2048, 144}, {1536, 576}, {576, 1536}, {576, 576}, {192, 576}};
  for (const auto& [n, k] : shapes)
    for (const int64_t rows : {1, 4, 8, 64, 500}) linear(*backend, dtype, rows, n, k);
  for (const int64_t rows : {1, 8, 64}) linear(*backend, dtype, rows, 49152, 576);
  lora(*backend, 64, 384, 144, 16);
  lora(*backend, 1000, 384, 144, 16);
  lora(*backend, 500, 1536, 576, 16);
  head(*backend, 500, 2048, 144);
  head(*backend, 64, 49152, 576);
  attention(*backend, 500, 8, 64, 4, 2, 32, false);
  attention(*backend, 512, 8, 64, 9, 3, 64, false);
  attention(*backend, 500, 64, 1, 4, 2, 32, true);
  attention(*backend, 1, 64, 200, 4, 2, 32, false);
  sampling(*backend, 64, 2048, 144, 0, 1);
  sampling(*backend, 64, 2048, 144, 50, 0.9f);
  sampling(*backend, 64, 2048, 144, 0, 0.9f);
}

}  // namespace

int main(int argc, char** argv) {
  int threads = 0;
  std::string only, dtype;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (word == "--only" && (value == "reference" || value == "cpu")) only = argv[++i];
    else if (word == "--dtype" && (value == "fp32" || value == "bf16")) dtype = argv[++i];
    else if (word == "--threads" && std::atoi(value.c_str()) > 0) threads = std::atoi(argv[++i]);
    else if (word == "--isa") {
      bool known = false;
      for (const auto isa : {reference::Isa::baseline, reference::Isa::avx2, reference::Isa::avx512, reference::Isa::avx512bf16})
        known |= value == reference::name_of(isa) && reference::use_isa(isa);
      if (!known) return std::fprintf(stderr, "native-bench: this CPU has no instruction set \"%s\"\n", value.c_str()), 2;
      ++i;
    } else {
      return std::fprintf(stderr, "usage: native-bench [--only reference|cpu] [--dtype fp32|bf16] [--threads N] [--isa scalar|avx2|avx512|avx512bf16]\n"), 2;
    }
  }
  for (const std::string name : {"reference", "cpu"})
    for (const DType type : {DType::f32, DType::bf16}) {
      if ((!only.empty() && only != name) || (!dtype.empty() && (dtype == "bf16") != (type == DType::bf16))) continue;
      run(name, type, threads > 0 ? threads : 1);
      if (threads == 0 && std::thread::hardware_concurrency() > 1) run(name, type, 2);
    }
  return 0;
}
