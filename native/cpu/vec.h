// Sixteen floats, in whatever registers the instruction set has. Included once per set by for_each_isa.h.
namespace cg::cpu::CG_ISA {

struct Vec {
  static constexpr int width = 16;
#if CG_ISA_LEVEL >= 2
  __m512 v;
#elif CG_ISA_LEVEL == 1
  __m256 v[2];
#else
  float v[16];
#endif
};

#if CG_ISA_LEVEL >= 2

CG_INLINE Vec zero() { return {_mm512_setzero_ps()}; }
CG_INLINE Vec broadcast(float x) { return {_mm512_set1_ps(x)}; }
CG_INLINE Vec load(const float* from) { return {_mm512_loadu_ps(from)}; }
CG_INLINE void store(float* to, Vec x) { _mm512_storeu_ps(to, x.v); }
/// a · b + c, rounded once.
CG_INLINE Vec fma(Vec a, Vec b, Vec c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
CG_INLINE Vec add(Vec a, Vec b) { return {_mm512_add_ps(a.v, b.v)}; }
CG_INLINE Vec mul(Vec a, Vec b) { return {_mm512_mul_ps(a.v, b.v)}; }

#elif CG_ISA_LEVEL == 1

CG_INLINE Vec zero() { return {{_mm256_setzero_ps(), _mm256_setzero_ps()}}; }
CG_INLINE Vec broadcast(float x) { return {{_mm256_set1_ps(x), _mm256_set1_ps(x)}}; }
CG_INLINE Vec load(const float* from) { return {{_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)}}; }
CG_INLINE void store(float* to, Vec x) {
  _mm256_storeu_ps(to, x.v[0]);
  _mm256_storeu_ps(to + 8, x.v[1]);
}
CG_INLINE Vec fma(Vec a, Vec b, Vec c) { return {{_mm256_fmadd_ps(a.v[0], b.v[0], c.v[0]), _mm256_fmadd_ps(a.v[1], b.v[1], c.v[1])}}; }
CG_INLINE Vec add(Vec a, Vec b) { return {{_mm256_add_ps(a.v[0], b.v[0]), _mm256_add_ps(a.v[1], b.v[1])}}; }
CG_INLINE Vec mul(Vec a, Vec b) { return {{_mm256_mul_ps(a.v[0], b.v[0]), _mm256_mul_ps(a.v[1], b.v[1])}}; }

#else

template <class F>
CG_INLINE Vec each(const F& f) {
  Vec y;
  for (int i = 0; i < 16; ++i) y.v[i] = f(i);
  return y;
}
CG_INLINE Vec zero() { return each([](int) CG_INLINE_LAMBDA { return 0.0f; }); }
CG_INLINE Vec broadcast(float x) { return each([x](int) CG_INLINE_LAMBDA { return x; }); }
CG_INLINE Vec load(const float* from) { return each([from](int i) CG_INLINE_LAMBDA { return from[i]; }); }
CG_INLINE void store(float* to, Vec x) {
  for (int i = 0; i < 16; ++i) to[i] = x.v[i];
}
CG_INLINE Vec fma(const Vec& a, const Vec& b, const Vec& c) { return each([&](int i) CG_INLINE_LAMBDA { return __builtin_fmaf(a.v[i], b.v[i], c.v[i]); }); }
CG_INLINE Vec add(const Vec& a, const Vec& b) { return each([&](int i) CG_INLINE_LAMBDA { return a.v[i] + b.v[i]; }); }
CG_INLINE Vec mul(const Vec& a, const Vec& b) { return each([&](int i) CG_INLINE_LAMBDA { return a.v[i] * b.v[i]; }); }

#endif

}  // namespace cg::cpu::CG_ISA
