// The arithmetic below the ops: exp and log over every float, bf16 and f16, random numbers, contraction, sums in lanes; the pool.
#include <atomic>
#include <bit>
#include <cmath>

#include "core/dtype.h"
#include "core/rng.h"
#include "reference/isa.h"
#include "reference/threads.h"
#include "reference/vector_math.h"
#include "test/tap.h"

namespace cg::test {

using reference::Isa;

namespace {

/// Distance in units of the last place of the correctly rounded result.
double ulps(float got, double want) {
  const float rounded = float(want);
  if (got == rounded || (std::isnan(got) && std::isnan(rounded))) return 0;
  if (std::isinf(rounded) || std::isinf(got)) return INFINITY;
  const double ulp = double(std::nextafter(std::abs(rounded), INFINITY)) - double(std::abs(rounded));
  return std::abs(double(got) - want) / ulp;
}

/// Every 61st float (61 is prime to 2^k: all exponents, all low bits), and the edges.
template <class F>
void for_many_floats(const F& f) {
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 61) f(std::bit_cast<float>(uint32_t(bits)));
}

std::vector<Isa> all_isas() {
  std::vector<Isa> list;
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512, Isa::avx512bf16})
    if (isa <= reference::best_isa()) list.push_back(isa);
  return list;
}

}  // namespace

CG_TEST("numbers", exp_accuracy) {
  point("exp is within 1 ulp, and has the same bits in every instruction set", [&](Point& p) {
    double worst = 0;
    float at = 0;
    for_many_floats([&](float x) {
      const double error = ulps(reference::exp_f(x), std::exp(double(x)));
      if (error > worst) worst = error, at = x;
    });
    p.expect(worst <= 1, "off by " + std::to_string(worst) + " ulp at " + std::to_string(at));
    std::printf("  # exp: at most %.3f ulp, at %.9g\n", worst, double(at));
    const auto in = [&](Isa isa) {
      reference::use_isa(isa);
      std::vector<float> y(1 << 16);
      reference::for_isa([&](auto) CG_INLINE_LAMBDA {
        for (size_t i = 0; i < y.size(); ++i) y[i] = reference::exp_f(std::bit_cast<float>(uint32_t(i * 65537 + 12345)));
      });
      reference::use_isa(reference::best_isa());
      for (float& v : y)
        if (std::isnan(v)) v = NAN;
      return y;
    };
    for (const Isa isa : all_isas()) p.same(reference::name_of(isa), in(isa), in(Isa::baseline));
  });
  point("exp at the edges", [&](Point& p) {
    p.same("values",
           std::vector<float>{reference::exp_f(0), reference::exp_f(-0.0f), reference::exp_f(-INFINITY), reference::exp_f(INFINITY), reference::exp_f(-104),
                              reference::exp_f(89)},
           {1, 1, 0, INFINITY, 0, INFINITY});
    p.expect(std::isnan(reference::exp_f(NAN)), "NaN stays NaN");
    p.expect(reference::exp_f(-103.5f) > 0, "the smallest subnormal");
  });
}

CG_TEST("numbers", log_accuracy) {
  point("log is correctly rounded, or within 0.501 ulp", [&](Point& p) {
    double worst = 0;
    float at = 0;
    for_many_floats([&](float x) {
      const double error = ulps(reference::log_f(x), std::log(double(x)));
      if (error > worst) worst = error, at = x;
    });
    p.expect(worst <= 0.501, "off by " + std::to_string(worst) + " ulp at " + std::to_string(at));
    std::printf("  # log: at most %.6f ulp, at %.9g\n", worst, double(at));
    p.same("edges", std::vector<float>{reference::log_f(1), reference::log_f(0), reference::log_f(INFINITY)}, {0, -INFINITY, INFINITY});
    p.expect(std::isnan(reference::log_f(-1)) && std::isnan(reference::log_f(NAN)), "NaN for negative and NaN");
  });
}

CG_TEST("numbers", contraction) {
  point("a · b + c is two roundings in every instruction set", [&](Point& p) {
    for (const Isa isa : all_isas()) {
      reference::use_isa(isa);
      std::vector<float> a(100, 1 + 0x1p-23f), c(100, -1 - 0x1p-22f), y(100);
      reference::for_isa([&](auto) CG_INLINE_LAMBDA {
        for (size_t i = 0; i < y.size(); ++i) y[i] = a[i] * a[i] + c[i];
      });
      p.same(reference::name_of(isa), y, std::vector<float>(100, 0.0f));  // fused it would be 2^-46
    }
    reference::use_isa(reference::best_isa());
  });
}

CG_TEST("numbers", lane_sums) {
  point("a sum is 32 lanes, joined by halves", [&](Point& p) {
    for (const int64_t n : {0, 1, 31, 32, 33, 1000}) {
      std::vector<float> x, lane(32);
      for (int64_t i = 0; i < n; ++i) x.push_back(float(uniform({1, 2, uint64_t(i)})) - 0.3f);
      for (int64_t i = 0; i < n; ++i) lane[size_t(i % 32)] += x[size_t(i)];
      for (size_t half = 16; half >= 1; half /= 2)
        for (size_t l = 0; l < half; ++l) lane[l] += lane[l + half];
      float largest = -INFINITY;
      for (const float v : x) largest = std::max(largest, v);
      for (const Isa isa : all_isas()) {
        reference::use_isa(isa);
        float sum = 0, top = 0;
        reference::for_isa([&](auto) CG_INLINE_LAMBDA {
          sum = reference::sum_of(n, [&](int64_t j) CG_INLINE_LAMBDA { return x[size_t(j)]; });
          top = reference::max_of(x.data(), n);
        });
        p.same(std::to_string(n), std::vector<float>{sum, top}, {lane[0], largest});
      }
      reference::use_isa(reference::best_isa());
    }
  });
}

CG_TEST("numbers", half_types) {
  point("every bf16 and f16 survives widening and rounding", [&](Point& p) {
    int wrong = 0;
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      const uint16_t b = uint16_t(bits);
      const float brain = widen_bf16(b), half = widen_f16(b);
      wrong += std::isnan(brain) ? !std::isnan(widen_bf16(round_to_bf16(brain))) : round_to_bf16(brain) != b;
      wrong += std::isnan(half) ? !std::isnan(widen_f16(round_to_f16(half))) : round_to_f16(half) != b;
    }
    p.expect(wrong == 0, std::to_string(wrong) + " do not");
  });
  point("known values, ties to even", [&](Point& p) {
    p.same("widen",
           std::vector<float>{widen_f16(0x3c00), widen_f16(0xc000), widen_f16(0x0001), widen_f16(0x7bff), widen_f16(0x7c00), widen_bf16(0x3f80),
                              widen_bf16(0x0001)},
           {1, -2, 0x1p-24f, 65504, INFINITY, 1, 0x1p-133f});
    const std::vector<float> x{1 + 0x1p-8f, 1 + 3 * 0x1p-8f, 3.397e38f, 3.396e38f};
    p.same("to bf16", std::vector<uint16_t>{round_to_bf16(x[0]), round_to_bf16(x[1]), round_to_bf16(x[2]), round_to_bf16(x[3])},
           {0x3f80, 0x3f82, 0x7f80, 0x7f7f});
    p.same("to f16",
           std::vector<uint16_t>{round_to_f16(1 + 0x1p-11f), round_to_f16(1 + 3 * 0x1p-11f), round_to_f16(65519), round_to_f16(65520), round_to_f16(0x1p-25f),
                                 round_to_f16(-0x1.8p-24f)},
           {0x3c00, 0x3c02, 0x7bff, 0x7c00, 0, 0x8002});
  });
}

CG_TEST("numbers", random_numbers) {
  point("Philox-4x32-10 gives the published vectors", [&](Point& p) {  // Random123, kat_vectors
    const auto words = [](std::array<uint32_t, 4> w) { return std::vector<uint32_t>(w.begin(), w.end()); };
    p.same("zeros", words(philox({0, 0, 0, 0}, {0, 0})), {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    p.same("ones", words(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u})), {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    p.same("pi", words(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0})), {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
  });
  point("uniform numbers lie in [0, 1), have mean ½, and differ by every part of the key", [&](Point& p) {
    double sum = 0;
    for (uint64_t i = 0; i < 10000; ++i) {
      const double u = uniform({i, i * i, ~i});
      p.expect(u >= 0 && u < 1, "range");
      sum += u;
    }
    p.expect(std::abs(sum / 10000 - 0.5) < 0.01, "mean " + std::to_string(sum / 10000));
    const double base = uniform({1, 2, 3});
    for (const SampleKey& key :
         {SampleKey{1 | uint64_t{1} << 40, 2, 3}, {1, 2 | uint64_t{1} << 40, 3}, {1, 2, 3 | uint64_t{1} << 40}, {2, 2, 3}, {1, 3, 3}, {1, 2, 4}})
      p.expect(uniform(key) != base, "a key's word is ignored");
  });
}

CG_TEST("numbers", pool) {
  point("every chunk runs once, whatever the threads, also from several callers", [&](Point& p) {
    reference::Threads::least_work = 0;
    for (const int count : {1, 2, 5}) {
      reference::Threads threads(count);
      std::vector<std::thread> callers;
      std::atomic<int> wrong{0};
      for (int caller = 0; caller < 3; ++caller)
        callers.emplace_back([&] {
          for (int64_t n = 0; n < 300; ++n) {
            std::vector<std::atomic<int>> hits(static_cast<size_t>(n));
            threads.run(n, 7, 1, [&](int64_t begin, int64_t end) {
              if (end - begin > 7 || (end - begin < 7 && end != n)) ++wrong;
              for (int64_t i = begin; i < end; ++i) ++hits[size_t(i)];
            });
            for (const auto& h : hits) wrong += h != 1;
          }
        });
      for (auto& caller : callers) caller.join();
      p.expect(wrong == 0, std::to_string(wrong) + " wrong with " + std::to_string(count) + " threads");
    }
  });
}

}  // namespace cg::test
