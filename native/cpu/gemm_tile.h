// Register tiles: y [R][n] (+)= Σ_k x[r][k] w[k][n] + bias, for one instruction set (for_each_isa.h).
//
// A tile is R rows by G groups by P vectors of 16 outputs. Each output is one chain of fused steps over k ascending from +0; a chain that is cut into blocks
// of k is put aside and continued. Which tile computes an output never shows in its bits.
//
//   step     lane of w         row of x                                  acc after the step
//   Fp32     w[k]              x[k]                                      fma(x[k], w[k], acc)
//   Split    w[2i], w[2i+1]    x[1], x[0], x[3], x[2], … as fp32         fma(x[2i], w[2i], fma(x[2i+1], w[2i+1], acc))
//   Dot      w[2i], w[2i+1]    lanes as of w                             the same in one instruction, VDPBF16PS
namespace cg::cpu::CG_ISA::gemm {

#if CG_ISA_LEVEL >= 2  // 32 registers of 16 floats
constexpr int most_rows = 8;
constexpr int vectors_at_once(int) { return 3; }
constexpr int groups_at_once(int rows) { return rows <= 2 ? 4 : rows <= 4 ? 2 : 1; }
#elif CG_ISA_LEVEL == 1  // 16 registers of 8 floats
constexpr int most_rows = 6;
constexpr int vectors_at_once(int rows) { return rows <= 2 ? 3 : rows == 3 ? 2 : 1; }
constexpr int groups_at_once(int rows) { return rows == 1 ? 2 : 1; }
#else
constexpr int most_rows = 1;
constexpr int vectors_at_once(int) { return 1; }
constexpr int groups_at_once(int) { return 1; }
#endif

/// The two bf16 of a lane, widened: bits move, nothing rounds.
#if CG_ISA_LEVEL >= 2
CG_INLINE Vec even_of(Vec lanes) { return {(__m512)((__v16su)lanes.v << 16)}; }
CG_INLINE Vec odd_of(Vec lanes) { return {(__m512)((__v16su)lanes.v & 0xffff0000)}; }
#elif CG_ISA_LEVEL == 1
CG_INLINE Vec even_of(Vec lanes) { return {{(__m256)((__v8su)lanes.v[0] << 16), (__m256)((__v8su)lanes.v[1] << 16)}}; }
CG_INLINE Vec odd_of(Vec lanes) { return {{(__m256)((__v8su)lanes.v[0] & 0xffff0000), (__m256)((__v8su)lanes.v[1] & 0xffff0000)}}; }
#else
CG_INLINE Vec even_of(const Vec& lanes) {
  return each([&](int i) CG_INLINE_LAMBDA { return std::bit_cast<float>(std::bit_cast<uint32_t>(lanes.v[i]) << 16); });
}
CG_INLINE Vec odd_of(const Vec& lanes) {
  return each([&](int i) CG_INLINE_LAMBDA { return std::bit_cast<float>(std::bit_cast<uint32_t>(lanes.v[i]) & 0xffff0000); });
}
#endif

/// acc[r][v] after x[r · x_stride] and w[v], R rows and V vectors.
template <int R, int V>
CG_INLINE void fused_step(Vec (&acc)[R][V], const float* x, int64_t x_stride, const Vec (&w)[V]) {
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    const Vec xr = broadcast(x[r * x_stride]);
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) acc[r][v] = fma(xr, w[v], acc[r][v]);
  }
}

struct Fp32 {
  static constexpr int floats = 1;  // of x in a step
  template <int R, int V>
  static CG_INLINE void step(Vec (&acc)[R][V], const float* x, int64_t x_stride, const Vec (&lanes)[V]) {
    fused_step(acc, x, x_stride, lanes);
  }
};

struct Split {
  static constexpr int floats = 2;
  template <int R, int V>
  static CG_INLINE void step(Vec (&acc)[R][V], const float* x, int64_t x_stride, const Vec (&lanes)[V]) {
    Vec half[V];
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) half[v] = odd_of(lanes[v]);
    fused_step(acc, x, x_stride, half);
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) half[v] = even_of(lanes[v]);
    fused_step(acc, x + 1, x_stride, half);
  }
};

#if CG_ISA_LEVEL >= 3
struct Dot {
  static constexpr int floats = 1;
  template <int R, int V>
  static CG_INLINE void step(Vec (&acc)[R][V], const float* x, int64_t x_stride, const Vec (&lanes)[V]) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const __m512i xr = _mm512_set1_epi32(std::bit_cast<int32_t>(x[r * x_stride]));
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) acc[r][v].v = _mm512_dpbf16_ps(acc[r][v].v, (__m512bh)xr, (__m512bh)_mm512_castps_si512(lanes[v].v));
    }
  }
};
#endif

/// What a tile reads, and where its chains come from and go to.
struct Strip {
  const float* x = nullptr;
  int64_t x_stride = 0;
  const float* w = nullptr;  // [steps][w_stride] lanes, groups group_stride apart
  int64_t w_stride = 0, group_stride = 0, steps = 0;
  const float* from = nullptr;  // or none: chains begin with +0
  int64_t from_stride = 0;
  float* to = nullptr;
  int64_t to_stride = 0;
  const float* bias = nullptr;  // or none
  bool accumulate = false;
  const char* ahead = nullptr;  // bytes wanted soon: one line of them each step, or (once) one for each vector, ahead_stride apart
  int64_t ahead_step = 0, ahead_stride = 0;
};

/// Bytes ahead in a stream of weights that is read once.
constexpr int64_t stream_distance = 4096;

/// Where vector v of a tile begins, from the tile's first group on.
template <int P>
constexpr int64_t column_of(int v) { return v / P * Panels::group_width + v % P * 16; }

/// `once`: no other tile reads these weights. Memory is the limit then, and several streams at a time get more out of it.
template <class Step, int R, int G, int P, bool once>
__attribute__((noinline)) void tile(const Strip& s, int64_t first_column) {
  constexpr int V = G * P;
  Vec acc[R][V];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) acc[r][v] = s.from ? load(s.from + r * s.from_stride + first_column + column_of<P>(v)) : zero();
  const float *x = s.x, *w = s.w + first_column;
  const char* ahead = s.ahead + (once ? first_column / 16 * s.ahead_stride : 0);
  const int64_t x_stride = s.x_stride, w_stride = s.w_stride, group_stride = s.group_stride, ahead_step = s.ahead_step, ahead_stride = s.ahead_stride;
  for (int64_t i = s.steps; i > 0; --i) {
    Vec lanes[V];
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) {
      const float* at = w + v / P * group_stride + v % P * 16;
      lanes[v] = load(at);
      if (once && G > 1) __builtin_prefetch(reinterpret_cast<const char*>(at) + stream_distance, 0, 3);
      if (once && G == 1) __builtin_prefetch(ahead + v * ahead_stride, 0, 3);
    }
    if (!once) __builtin_prefetch(ahead, 0, 2);
    Step::template step<R, V>(acc, x, x_stride, lanes);
    x += Step::floats;
    w += w_stride;
    ahead += ahead_step;
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) {
      float* to = s.to + r * s.to_stride + first_column + column_of<P>(v);
      Vec value = acc[r][v];
      if (s.bias) value = add(value, load(s.bias + first_column + column_of<P>(v)));
      if (s.accumulate) value = add(load(to), value);
      store(to, value);
    }
}

/// R rows by V vectors of one group.
template <class Step, int R, int V, bool once = false>
void strip(const Strip& s) {
  constexpr int P = std::min(V, vectors_at_once(R));
  for (int v = 0; v + P <= V; v += P) tile<Step, R, 1, P, once>(s, v * 16);
  if constexpr (V % P != 0) tile<Step, R, 1, V % P, once>(s, V / P * P * 16);
}

/// Rows and vectors known only now.
template <class Step, int R = most_rows>
CG_INLINE void any_strip(int64_t rows, int64_t vectors, const Strip& s) {
  if constexpr (R > 0) {
    if (rows != R) return any_strip<Step, R - 1>(rows, vectors, s);
    if (vectors == 3) strip<Step, R, 3>(s);
    else if (vectors == 2) strip<Step, R, 2>(s);
    else strip<Step, R, 1>(s);
  }
}

/// Few rows: whole groups side by side, so that enough chains are in flight and the weights are one pass. Returns how many groups are done.
template <class Step, int R = most_rows>
CG_INLINE int64_t whole_groups(int64_t rows, int64_t groups, Strip s) {
  if constexpr (R > 0) {
    if (rows != R) return whole_groups<Step, R - 1>(rows, groups, s);
    constexpr int G = groups_at_once(R);
    int64_t g = 0;
    for (; g + G <= groups; g += G) {
      if constexpr (G > 1) {
        tile<Step, R, G, 3, true>(s, 0);
      } else {
        s.ahead = reinterpret_cast<const char*>(s.w + s.group_stride);  // the next group in three streams
        s.ahead_step = 64;
        s.ahead_stride = s.steps * 64;
        strip<Step, R, 3, true>(s);
      }
      s.w += G * s.group_stride;
      s.to += G * Panels::group_width;
      if (s.bias) s.bias += G * Panels::group_width;
    }
    return g;
  }
  return 0;
}

}  // namespace cg::cpu::CG_ISA::gemm
