// Vec beyond products: differences, the larger of two, the first lanes only, exp, reductions of sixteen rows at once, a transpose. Included by kernel files (no
// guard: once per instruction set), after vec.h. Each gives the bits of the plain code of reference/vector_math.h; the shortest form of a set stands beside the
// plain one.
namespace cg::cpu::CG_ISA {

#if CG_ISA_LEVEL >= 2

/// Of the forms without a mask, GCC 12 warns that they read something uninitialised; the code is the same.
constexpr __mmask16 all = 0xffff;

/// Lanes 0 … n − 1; n may be below 0 or above 16.
CG_INLINE __mmask16 first_lanes(int64_t n) {
  return _mm512_cmpgt_epi32_mask(_mm512_set1_epi32(int32_t(n)), _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}

CG_INLINE Vec sub(Vec a, Vec b) { return {_mm512_sub_ps(a.v, b.v)}; }
/// a > b ? a : b, so that a NaN in a gives b.
CG_INLINE Vec larger(Vec a, Vec b) { return {_mm512_maskz_max_ps(all, a.v, b.v)}; }
/// The first n lanes of x, then `rest`.
CG_INLINE Vec first_of(Vec x, int64_t n, Vec rest) { return {_mm512_mask_mov_ps(rest.v, first_lanes(n), x.v)}; }
/// Touches the first n floats only; the other lanes are zero.
CG_INLINE Vec load_first(const float* from, int64_t n) { return {_mm512_maskz_loadu_ps(first_lanes(n), from)}; }
CG_INLINE void store_first(float* to, Vec x, int64_t n) { _mm512_mask_storeu_ps(to, first_lanes(n), x.v); }

/// exp_f of every lane of N vectors, step by step for all of them: one alone waits for each of its steps. p · 2^n is rounded once, as the two steps of
/// exp_f round once: the first of them is exact. Lanes of x ≤ −104, which masked scores are, would underflow to 0, at some 150 cycles an instruction: they
/// are left out.
template <int N>
CG_INLINE void exp(Vec (&x)[N]) {
  __m512 n[N], r[N], p[N];
  __mmask16 some[N];
#define CG_EACH _Pragma("GCC unroll 4") for (int i = 0; i < N; ++i)
  const __m512 round = _mm512_set1_ps(0x1.8p23f);
  CG_EACH some[i] = _mm512_cmp_ps_mask(x[i].v, _mm512_set1_ps(-104.0f), _CMP_NLE_UQ);
  CG_EACH x[i].v = _mm512_maskz_min_ps(all, _mm512_set1_ps(89.0f), x[i].v);  // NaN stays: it is the second operand
  CG_EACH n[i] = _mm512_mul_ps(x[i].v, _mm512_set1_ps(1.44269504f));
  CG_EACH n[i] = _mm512_add_ps(n[i], round);
  CG_EACH n[i] = _mm512_sub_ps(n[i], round);
  CG_EACH r[i] = _mm512_sub_ps(x[i].v, _mm512_mul_ps(n[i], _mm512_set1_ps(0.693359375f)));
  CG_EACH r[i] = _mm512_sub_ps(r[i], _mm512_mul_ps(n[i], _mm512_set1_ps(-2.12194440e-4f)));
  CG_EACH p[i] = _mm512_mul_ps(_mm512_set1_ps(1.9875691500e-4f), r[i]);
  CG_EACH p[i] = _mm512_add_ps(p[i], _mm512_set1_ps(1.3981999507e-3f));
  CG_EACH p[i] = _mm512_mul_ps(p[i], r[i]);
  CG_EACH p[i] = _mm512_add_ps(p[i], _mm512_set1_ps(8.3334519073e-3f));
  CG_EACH p[i] = _mm512_mul_ps(p[i], r[i]);
  CG_EACH p[i] = _mm512_add_ps(p[i], _mm512_set1_ps(4.1665795894e-2f));
  CG_EACH p[i] = _mm512_mul_ps(p[i], r[i]);
  CG_EACH p[i] = _mm512_add_ps(p[i], _mm512_set1_ps(1.6666665459e-1f));
  CG_EACH p[i] = _mm512_mul_ps(p[i], r[i]);
  CG_EACH p[i] = _mm512_add_ps(p[i], _mm512_set1_ps(5.0000001201e-1f));
  CG_EACH p[i] = _mm512_mul_ps(p[i], r[i]);
  CG_EACH p[i] = _mm512_mul_ps(p[i], r[i]);
  CG_EACH p[i] = _mm512_add_ps(p[i], r[i]);
  CG_EACH p[i] = _mm512_add_ps(p[i], _mm512_set1_ps(1.0f));
  CG_EACH x[i].v = _mm512_maskz_scalef_ps(some[i], p[i], n[i]);
#undef CG_EACH
}

struct Sum {
  static CG_INLINE __m512 of(__m512 a, __m512 b) { return _mm512_add_ps(a, b); }
};
struct Largest {
  static CG_INLINE __m512 of(__m512 a, __m512 b) { return _mm512_maskz_max_ps(all, b, a); }
};

/// Lane i: the lanes of rows[i] joined by halves (+ 8, + 4, + 2, + 1). Each step halves two vectors into one.
template <class Join>
CG_INLINE Vec join_rows(const float (*rows)[16]) {
  __m512 eight[8], four[4], two[2];
  for (int i = 0; i < 8; ++i) {  // [row a: 8, row b: 8]; the order of rows is what the last step turns into ascending
    const int a = 2 * i, b = 2 * i + 1;
    const __m512 x = _mm512_loadu_ps(rows[a % 4 * 4 + a / 4]), y = _mm512_loadu_ps(rows[b % 4 * 4 + b / 4]);
    eight[i] = Join::of(_mm512_maskz_shuffle_f32x4(all, x, y, 0x44), _mm512_maskz_shuffle_f32x4(all, x, y, 0xee));
  }
  for (int i = 0; i < 4; ++i) {
    const __m512 x = eight[2 * i], y = eight[2 * i + 1];
    four[i] = Join::of(_mm512_maskz_shuffle_f32x4(all, x, y, 0x88), _mm512_maskz_shuffle_f32x4(all, x, y, 0xdd));
  }
  for (int i = 0; i < 2; ++i)
    two[i] = Join::of(_mm512_maskz_shuffle_ps(all, four[2 * i], four[2 * i + 1], 0x44), _mm512_maskz_shuffle_ps(all, four[2 * i], four[2 * i + 1], 0xee));
  return {Join::of(_mm512_maskz_shuffle_ps(all, two[0], two[1], 0x88), _mm512_maskz_shuffle_ps(all, two[0], two[1], 0xdd))};
}

/// to[i · stride + j] = from[j][i] for i < n ≤ 16 and all j < 16.
CG_INLINE void transpose(const float* const* from, int64_t n, float* to, int64_t stride) {
  __m512 a[16], b[16];
  const __mmask16 some = first_lanes(n);
  for (int j = 0; j < 16; ++j) a[j] = _mm512_maskz_loadu_ps(some, from[j]);
  for (int j = 0; j < 8; ++j) {
    b[2 * j] = _mm512_maskz_unpacklo_ps(all, a[2 * j], a[2 * j + 1]);
    b[2 * j + 1] = _mm512_maskz_unpackhi_ps(all, a[2 * j], a[2 * j + 1]);
  }
  for (int j = 0; j < 4; ++j) {  // a[4 j + i], 128 bits L: element 4 L + i of rows 4 j … 4 j + 3
    a[4 * j] = _mm512_maskz_shuffle_ps(all, b[4 * j], b[4 * j + 2], 0x44);
    a[4 * j + 1] = _mm512_maskz_shuffle_ps(all, b[4 * j], b[4 * j + 2], 0xee);
    a[4 * j + 2] = _mm512_maskz_shuffle_ps(all, b[4 * j + 1], b[4 * j + 3], 0x44);
    a[4 * j + 3] = _mm512_maskz_shuffle_ps(all, b[4 * j + 1], b[4 * j + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    const __m512 even0 = _mm512_maskz_shuffle_f32x4(all, a[i], a[4 + i], 0x88), odd0 = _mm512_maskz_shuffle_f32x4(all, a[i], a[4 + i], 0xdd);
    const __m512 even1 = _mm512_maskz_shuffle_f32x4(all, a[8 + i], a[12 + i], 0x88), odd1 = _mm512_maskz_shuffle_f32x4(all, a[8 + i], a[12 + i], 0xdd);
    b[i] = _mm512_maskz_shuffle_f32x4(all, even0, even1, 0x88);
    b[8 + i] = _mm512_maskz_shuffle_f32x4(all, even0, even1, 0xdd);
    b[4 + i] = _mm512_maskz_shuffle_f32x4(all, odd0, odd1, 0x88);
    b[12 + i] = _mm512_maskz_shuffle_f32x4(all, odd0, odd1, 0xdd);
  }
  for (int i = 0; i < 16; ++i)
    if (i < n) _mm512_storeu_ps(to + i * stride, b[i]);
}

#else

#if CG_ISA_LEVEL == 1

CG_INLINE __m256i first_lanes(int64_t n) { return _mm256_cmpgt_epi32(_mm256_set1_epi32(int32_t(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)); }
CG_INLINE Vec sub(Vec a, Vec b) { return {{_mm256_sub_ps(a.v[0], b.v[0]), _mm256_sub_ps(a.v[1], b.v[1])}}; }
CG_INLINE Vec larger(Vec a, Vec b) { return {{_mm256_max_ps(a.v[0], b.v[0]), _mm256_max_ps(a.v[1], b.v[1])}}; }
CG_INLINE Vec first_of(Vec x, int64_t n, Vec rest) {
  return {{_mm256_blendv_ps(rest.v[0], x.v[0], _mm256_castsi256_ps(first_lanes(n))),
           _mm256_blendv_ps(rest.v[1], x.v[1], _mm256_castsi256_ps(first_lanes(n - 8)))}};
}
CG_INLINE Vec load_first(const float* from, int64_t n) {
  return {{_mm256_maskload_ps(from, first_lanes(n)), _mm256_maskload_ps(from + 8, first_lanes(n - 8))}};
}
CG_INLINE void store_first(float* to, Vec x, int64_t n) {
  _mm256_maskstore_ps(to, first_lanes(n), x.v[0]);
  _mm256_maskstore_ps(to + 8, first_lanes(n - 8), x.v[1]);
}

#else

CG_INLINE Vec sub(const Vec& a, const Vec& b) { return each([&](int i) CG_INLINE_LAMBDA { return a.v[i] - b.v[i]; }); }
CG_INLINE Vec larger(const Vec& a, const Vec& b) { return each([&](int i) CG_INLINE_LAMBDA { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; }); }
CG_INLINE Vec first_of(const Vec& x, int64_t n, const Vec& rest) { return each([&](int i) CG_INLINE_LAMBDA { return i < n ? x.v[i] : rest.v[i]; }); }
CG_INLINE Vec load_first(const float* from, int64_t n) { return each([=](int i) CG_INLINE_LAMBDA { return i < n ? from[i] : 0.0f; }); }
CG_INLINE void store_first(float* to, const Vec& x, int64_t n) {
  for (int i = 0; i < 16; ++i)
    if (i < n) to[i] = x.v[i];
}

#endif

template <int N>
CG_INLINE void exp(Vec (&x)[N]) {
  for (Vec& some : x) {
    float lane[16];
    store(lane, some);
    for (int i = 0; i < 16; ++i) {
      const bool none = lane[i] <= -104.0f;
      const float y = reference::exp_f(none ? 0.0f : lane[i]);
      lane[i] = none ? 0.0f : y;
    }
    some = load(lane);
  }
}

struct Sum {
  static CG_INLINE float of(float a, float b) { return a + b; }
};
struct Largest {
  static CG_INLINE float of(float a, float b) { return b > a ? b : a; }
};

template <class Join>
CG_INLINE Vec join_rows(const float (*rows)[16]) {
  float joined[16];
  for (int i = 0; i < 16; ++i) {
    float lane[16];
    for (int l = 0; l < 16; ++l) lane[l] = rows[i][l];
    for (int half = 8; half >= 1; half /= 2)
      for (int l = 0; l < half; ++l) lane[l] = Join::of(lane[l], lane[l + half]);
    joined[i] = lane[0];
  }
  return load(joined);
}

CG_INLINE void transpose(const float* const* from, int64_t n, float* to, int64_t stride) {
  for (int64_t i = 0; i < n; ++i)
    for (int j = 0; j < 16; ++j) to[i * stride + j] = from[j][i];
}

#endif

CG_INLINE Vec exp(Vec x) {
  Vec one[1] = {x};
  exp(one);
  return one[0];
}

}  // namespace cg::cpu::CG_ISA
