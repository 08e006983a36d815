// Ops that move or add whole rows: embedding lookup and its gradient, gather, scatter, add, and the key/value store.
#include <algorithm>
#include <cstring>

#include "reference/reference_backend.h"

namespace cg::reference {

// y[i] = table[ids[i]].  table [V, H], ids [R], y [R, H]
void ReferenceBackend::embed(Queue& queue, Weight table, Tensor ids_t, Tensor y_t) {
  enqueue(queue, [&] {
    const Packed& w = packed(table);
    const auto ids = view<int32_t>(ids_t);
    const auto y = view<float>(y_t);
    CG_INVARIANT(y.n0 == ids.n0 && (y.n0 == 0 || y.n2 == w.k));
    check_index(ids, w.n, "token id");
    for (int64_t i = 0; i < y.n0; ++i) w.read(ids.data[i], y.row(i));
  });
}

// out[ids[i]] += dx[i], i ascending.  dx [R, H], out [V, H]. Threads share columns: an element's chain has one owner.
void ReferenceBackend::embed_gradient(Queue& queue, Tensor ids_t, Tensor dx_t, Tensor out_t) {
  enqueue(queue, [&] {
    const auto ids = view<int32_t>(ids_t);
    const auto dx = view<float>(dx_t), out = view<float>(out_t);
    CG_INVARIANT(dx.n0 == ids.n0 && (dx.n0 == 0 || dx.n2 == out.n2));
    check_index(ids, out.n0, "token id");
    constexpr int64_t wide = 32;
    threads_.run((dx.n2 + wide - 1) / wide, 1, double(dx.n0 * dx.n2), [&](int64_t begin, int64_t end) {
      const int64_t first = begin * wide, last = std::min(end * wide, dx.n2);
      for (int64_t i = 0; i < dx.n0; ++i) {
        const float* from = dx.row(i);
        float* to = out.row(ids.data[i]);
        for (int64_t j = first; j < last; ++j) to[j] += from[j];
      }
    });
  });
}

// y[i] = x[index[i]]
void ReferenceBackend::gather_rows(Queue& queue, Tensor x_t, Tensor index_t, Tensor y_t) {
  enqueue(queue, [&] {
    const auto x = view<float>(x_t), y = view<float>(y_t);
    const auto index = view<int32_t>(index_t);
    CG_INVARIANT(y.n0 == index.n0 && (y.n0 == 0 || y.n2 == x.n2));
    check_index(index, x.n0, "row");
    for (int64_t i = 0; i < y.n0; ++i) std::memcpy(y.row(i), x.row(index.data[i]), size_t(y.n2) * 4);
  });
}

// y[index[i]] = x[i]
void ReferenceBackend::scatter_rows(Queue& queue, Tensor x_t, Tensor index_t, Tensor y_t) {
  enqueue(queue, [&] {
    const auto x = view<float>(x_t), y = view<float>(y_t);
    const auto index = view<int32_t>(index_t);
    CG_INVARIANT(x.n0 == index.n0 && (x.n0 == 0 || x.n2 == y.n2));
    check_index(index, y.n0, "row");
    for (int64_t i = 0; i < x.n0; ++i) std::memcpy(y.row(index.data[i]), x.row(i), size_t(x.n2) * 4);
  });
}

// y += x
void ReferenceBackend::add(Queue& queue, Tensor x_t, Tensor y_t) {
  enqueue(queue, [&] {
    const auto x = view<float>(x_t), y = view<float>(y_t);
    CG_INVARIANT(x.n0 == y.n0 && x.n1 == y.n1 && x.n2 == y.n2);
    if (x_t.rank == 1) {  // a flat span: no rows to speak of
      threads_.run(x.n0, 1 << 14, double(x.n0), [&](int64_t begin, int64_t end) {
        const float* from = x.data;
        float* to = y.data;
        for (int64_t i = begin; i < end; ++i) to[i] += from[i];
      });
      return;
    }
    threads_.run(x.n0, 64, double(x.n0 * x.n1 * x.n2), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        for (int64_t h = 0; h < x.n1; ++h) {
          const float* from = x.row(i, h);
          float* to = y.row(i, h);
          for (int64_t j = 0; j < x.n2; ++j) to[j] += from[j];
        }
    });
  });
}

// kv[slot[i]] = x[i].  x [R, NK, D], kv [S, NK, D], or by pages [S / 64, NK, D, 64]: slot s is column s mod 64 of page s div 64
void ReferenceBackend::store_kv(Queue& queue, Tensor x_t, Tensor slot_t, Tensor kv_t) {
  enqueue(queue, [&] {
    const auto x = view<float>(x_t), kv = view<float>(kv_t);
    const auto slot = view<int32_t>(slot_t);
    const bool paged = kv_t.rank == 4;
    CG_INVARIANT(x.n0 == slot.n0 && (x.n0 == 0 || (x.n1 == kv.n1 && (paged ? x.n2 * page_size : x.n2) == kv.n2)));
    check_index(slot, paged ? kv.n0 * page_size : kv.n0, "slot");
    for (int64_t i = 0; i < x.n0; ++i)
      for (int64_t h = 0; h < x.n1; ++h) {
        const float* from = x.row(i, h);
        const int64_t at = slot.data[i];
        if (!paged) {
          std::memcpy(kv.row(at, h), from, size_t(x.n2) * 4);
          continue;
        }
        float* column = kv.row(at / page_size, h) + at % page_size;
        for (int64_t d = 0; d < x.n2; ++d) column[d * page_size] = from[d];
      }
  });
}

}  // namespace cg::reference
