// native-bench [--only reference|cpu] [--threads N] [--isa scalar|avx2|avx512|avx512bf16]: GFLOP/s of the backend's ops at the sizes of small models.
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

namespace {

using namespace cg;

/// One thread is timed by its CPU time, which a busy machine does not spoil; several by the wall clock.
clockid_t clock_used = CLOCK_MONOTONIC;
double now() {
  timespec t;
  clock_gettime(clock_used, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

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

  void time(const std::string& what, double flops, const std::function<void()>& op) {
    double best = 1e9, total = 0;
    for (int run = 0; run < 200 && (run < 5 || total < 0.4); ++run) {
      const double start = now();
      op();
      backend.wait(*queue);
      const double seconds = now() - start;
      best = std::min(best, seconds);
      total += seconds;
    }
    std::printf("%-58s %8.1f GFLOP/s %10.1f us\n", what.c_str(), flops / best / 1e9, best * 1e6);
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

void linears(Backend& backend, int64_t rows, int64_t n, int64_t k, int64_t rank) {
  Bench b{backend};
  const std::string shape = text(" %dx%dx%d", rows, n, k), ranked = text(" %dx%dx%d rank %d", rows, n, k, rank);
  const Tensor x = b.random({rows, k}), y = b.random({rows, n}), a = b.random({rank, k}), lb = b.random({n, rank}), h = b.random({rows, rank}),
               da = b.make({rank, k}), db = b.make({n, rank});
  const Weight w = b.weight(n, k);
  const double flops = 2.0 * double(rows * n * k), small_k = 2.0 * double(rows * rank * k), small_n = 2.0 * double(rows * rank * n);
  const Tensor none = b.make({1});
  b.time("matmul" + shape, flops, [&] { backend.matmul(*b.queue, x, w, Weight{}, y, false, none); });
  if (rows >= 256) {
    b.time("matmul_backward" + shape, flops, [&] { backend.matmul_backward(*b.queue, y, w, x, false, none); });
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
  backend.release(w);
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

void run(const std::string& name, int threads) {
  const auto backend = name == "cpu" ? make_cpu_backend(threads) : make_reference_backend(threads);
  clock_used = threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  std::printf("\n%s: %s, %s time\n", cpu_name().c_str(), backend->description().c_str(), threads == 1 ? "CPU" : "wall");
  for (const int64_t rows : {1, 8, 64}) linears(*backend, rows, 384, 144, 16);
  linears(*backend, 1000, 384, 144, 16);
  linears(*backend, 1000, 144, 384, 16);
  linears(*backend, 500, 1536, 576, 16);
  linears(*backend, 500, 576, 1536, 16);
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
  std::string only;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (word == "--only" && (value == "reference" || value == "cpu")) only = argv[++i];
    else if (word == "--threads" && std::atoi(value.c_str()) > 0) threads = std::atoi(argv[++i]);
    else if (word == "--isa") {
      bool known = false;
      for (const auto isa : {reference::Isa::baseline, reference::Isa::avx2, reference::Isa::avx512, reference::Isa::avx512bf16})
        known |= value == reference::name_of(isa) && reference::use_isa(isa);
      if (!known) return std::fprintf(stderr, "native-bench: this CPU has no instruction set \"%s\"\n", value.c_str()), 2;
      ++i;
    } else return std::fprintf(stderr, "usage: native-bench [--only reference|cpu] [--threads N] [--isa scalar|avx2|avx512|avx512bf16]\n"), 2;
  }
  for (const std::string name : {"reference", "cpu"}) {
    if (!only.empty() && only != name) continue;
    run(name, threads > 0 ? threads : 1);
    if (threads == 0 && std::thread::hardware_concurrency() > 1) run(name, 2);
  }
  return 0;
}
