// Attention over tries and over a sampler's pages, against a plain float64 softmax; its gradient against central differences of that twin.
#include <cmath>

#include "cpu/turns.h"
#include "reference/threads.h"
#include "test/device.h"
#include "test/slope.h"
#include "test/tap.h"

namespace cg::test {

using Doubles = std::vector<double>;

namespace {

/// A segment of a trie: `length` tokens after the last token of segment `parent` (−1: a root that begins at absolute position `start`).
struct Segment {
  int parent;
  int64_t length, start;
};

struct Trie {
  std::vector<int32_t> position, first, table, gather, subtree_end;
  int64_t rows() const { return int64_t(position.size()); }
};

/// Segments are given depth first; slot = row.
Trie make_trie(const std::vector<Segment>& segments) {
  Trie t;
  std::vector<std::vector<int32_t>> path;
  std::vector<int64_t> start, begin;
  for (const Segment& s : segments) {
    std::vector<int32_t> slots = s.parent < 0 ? std::vector<int32_t>{} : path[size_t(s.parent)];
    start.push_back(s.parent < 0 ? s.start : start[size_t(s.parent)]);
    begin.push_back(t.rows());
    for (int64_t i = 0; i < s.length; ++i) {
      t.position.push_back(int32_t(start.back() + int64_t(slots.size())));
      t.first.push_back(int32_t(start.back()));
      t.table.push_back(int32_t(t.gather.size()));
      slots.push_back(int32_t(t.rows() - 1));
    }
    t.gather.insert(t.gather.end(), slots.begin(), slots.end());
    path.push_back(slots);
  }
  t.subtree_end.resize(t.position.size());
  for (int64_t i = 0; i < t.rows(); ++i)
    for (int64_t row = i; row < t.rows(); ++row) {
      const auto& list = t.gather;
      for (int64_t j = t.table[size_t(row)]; j <= t.table[size_t(row)] + t.position[size_t(row)] - t.first[size_t(row)]; ++j)
        if (list[size_t(j)] == i) t.subtree_end[size_t(i)] = int32_t(row + 1);
    }
  return t;
}

AttentionTable put(Device& d, const Trie& t) { return {d.put(t.position), d.put(t.first), d.put(t.table), d.put(t.gather), d.put(t.subtree_end)}; }
AttentionTable slice(AttentionTable table, int64_t from, int64_t to) {
  for (Tensor* x : {&table.position, &table.first, &table.table}) *x = x->rows(from, to);
  return table;
}

struct Sizes {
  int64_t heads, kv_heads, d;
};

struct Output {
  Doubles out, lse;
};
Output twin(const Trie& t, const Sizes& s, const Doubles& q, const Doubles& k, const Doubles& v) {
  Output o{Doubles(q.size()), Doubles(size_t(t.rows() * s.heads))};
  for (int64_t i = 0; i < t.rows(); ++i)
    for (int64_t h = 0; h < s.heads; ++h) {
      const int64_t group = h / (s.heads / s.kv_heads), count = t.position[size_t(i)] - t.first[size_t(i)] + 1;
      Doubles score(static_cast<size_t>(count));
      double top = -INFINITY, sum = 0;
      const auto at = [&](int64_t j, int64_t dim) { return size_t((t.gather[size_t(t.table[size_t(i)] + j)] * s.kv_heads + group) * s.d + dim); };
      for (int64_t j = 0; j < count; ++j) {
        for (int64_t dim = 0; dim < s.d; ++dim) score[size_t(j)] += q[size_t((i * s.heads + h) * s.d + dim)] * k[at(j, dim)] / std::sqrt(double(s.d));
        top = std::max(top, score[size_t(j)]);
      }
      for (double& x : score) sum += (x = std::exp(x - top));
      for (int64_t j = 0; j < count; ++j)
        for (int64_t dim = 0; dim < s.d; ++dim) o.out[size_t((i * s.heads + h) * s.d + dim)] += score[size_t(j)] / sum * v[at(j, dim)];
      o.lse[size_t(i * s.heads + h)] = top + std::log(sum);
    }
  return o;
}

struct Case {
  const char* name;
  std::vector<Segment> segments;
  Sizes sizes;
};
const Case cases[] = {
    {"one token", {{-1, 1, 0}}, {1, 1, 2}},
    {"no row", {}, {2, 1, 8}},
    {"one row far out", {{-1, 1, 1000}}, {2, 2, 16}},
    {"65 rows", {{-1, 65, 0}}, {4, 2, 32}},
    {"200 rows from position 37", {{-1, 200, 37}}, {3, 1, 24}},
    {"shared prefix of 70, three branches", {{-1, 70, 0}, {0, 5, 0}, {0, 61, 0}, {0, 1, 0}}, {4, 2, 32}},
    {"forest with branches of branches", {{-1, 10, 0}, {0, 60, 0}, {1, 3, 0}, {1, 20, 0}, {0, 2, 0}, {-1, 33, 5}, {5, 40, 0}, {-1, 1, 0}}, {6, 2, 10}},
    {"prefix that ends with a tile", {{-1, 128, 0}, {0, 64, 0}, {0, 65, 0}}, {2, 1, 64}},
    {"eight query heads to a key head", {{-1, 20, 60}, {0, 9, 0}, {0, 70, 0}}, {8, 1, 16}},
    {"three query heads to a key head", {{-1, 66, 0}, {0, 70, 0}, {0, 3, 0}, {2, 1, 0}}, {9, 3, 64}},
    {"five query heads to a key head, D = 80", {{-1, 17, 0}, {0, 50, 0}}, {5, 1, 80}},
    {"D = 96", {{-1, 100, 0}, {0, 1, 0}, {0, 40, 0}}, {2, 2, 96}},
    {"D = 128", {{-1, 66, 62}, {0, 5, 0}}, {4, 2, 128}},
    {"D = 7", {{-1, 5, 0}, {0, 64, 0}, {0, 64, 0}}, {7, 1, 7}},
    {"a chain of twenty short segments, each with a sibling",
     {{-1, 3, 1}, {0, 9, 0}, {1, 9, 0}, {2, 9, 0}, {3, 9, 0}, {4, 9, 0}, {5, 9, 0}, {6, 9, 0}, {7, 9, 0}, {8, 9, 0},
      {8, 2, 0},  {7, 2, 0}, {6, 2, 0}, {5, 2, 0}, {4, 2, 0}, {3, 2, 0}, {2, 2, 0}, {1, 70, 0}, {0, 2, 0}, {0, 130, 0}},
     {4, 2, 8}},
};

}  // namespace

CG_TEST("attention", attention_tries) {
  for (const Case& c : cases)
    point(c.name, [&](Point& p) {
      const Trie t = make_trie(c.segments);
      const Sizes s = c.sizes;
      const int64_t R = t.rows();
      auto q = random(R * s.heads * s.d, 1);
      for (float& x : q) x *= 4;
      const auto k = random(R * s.kv_heads * s.d, 2), v = random(R * s.kv_heads * s.d, 3);
      const auto run = [&](Device& d, int64_t from, int64_t to) {
        const AttentionTable table = slice(put(d, t), from, to);
        const Tensor out = d.make({to - from, s.heads, s.d}), lse = d.make({to - from, s.heads});
        d.backend.attention(d.queue(), d.put(q, {R, s.heads, s.d}).rows(from, to), d.put(k, {R, s.kv_heads, s.d}), d.put(v, {R, s.kv_heads, s.d}), table, out,
                            lse, d.workspace(Op::attention, R, s.heads, s.d));
        auto both = d.get<float>(out);
        const auto sums = d.get<float>(lse);
        both.insert(both.end(), sums.begin(), sums.end());
        return both;
      };
      const auto got = everywhere(p, [&](Device& d) { return run(d, 0, R); });
      const auto want = twin(t, s, Doubles(q.begin(), q.end()), Doubles(k.begin(), k.end()), Doubles(v.begin(), v.end()));
      Doubles both = want.out;
      both.insert(both.end(), want.lse.begin(), want.lse.end());
      p.near("out, lse", got, both, 2e-6);
      Device d(primary());
      const int64_t width = s.heads * s.d;
      for (int64_t i = 0; i < R; i += i < 3 ? 1 : 29) {  // decode: each row by itself
        const auto alone = run(d, i, i + 1);
        std::vector<float> expected(got.begin() + i * width, got.begin() + (i + 1) * width);
        expected.insert(expected.end(), got.begin() + R * width + i * s.heads, got.begin() + R * width + (i + 1) * s.heads);
        p.same("row " + std::to_string(i) + " alone", alone, expected);
      }
      if (R > 7) {  // prefill in two chunks
        auto head = run(d, 0, 7), tail = run(d, 7, R);
        p.same("first chunk", std::vector<float>(head.begin(), head.begin() + 7 * width), std::vector<float>(got.begin(), got.begin() + 7 * width));
        p.same("second chunk", std::vector<float>(tail.begin(), tail.begin() + (R - 7) * width),
               std::vector<float>(got.begin() + 7 * width, got.begin() + R * width));
      }
    });
}

// The vectors' exp is exp_f to the bit, in every instruction set: scores of one position that lie x below the row's largest, a grid of x, become weights that
// the output shows. Weights below the smallest normal number and masked scores are among them.
CG_TEST("attention", attention_weights) {
  point("exp of differences from 0 to 110", [&](Point& p) {
    const int64_t n = 8000;
    const auto got = everywhere(p, [&](Device& d) {
      std::vector<int32_t> position, first, table, gather;
      std::vector<float> q, k, v;
      for (int64_t i = 0; i < n; ++i) {  // key 2 i: score 0, value 0; key 2 i + 1: score −x, value 1
        position.push_back(1), first.push_back(0), table.push_back(int32_t(2 * i));
        gather.push_back(int32_t(2 * i)), gather.push_back(int32_t(2 * i + 1));
        k.push_back(0), k.push_back(float(-110.0 * double(i) / double(n))), v.push_back(0), v.push_back(1), q.push_back(1);
      }
      const Tensor result = d.make({n, 1, 1});
      d.backend.attention(d.queue(), d.put(q, {n, 1, 1}), d.put(k, {2 * n, 1, 1}), d.put(v, {2 * n, 1, 1}),
                          {d.put(position), d.put(first), d.put(table), d.put(gather), Tensor{}}, result, Tensor{}, d.workspace(Op::attention, n, 1, 1));
      return d.get<float>(result);
    });
    Doubles want;
    for (int64_t i = 0; i < n; ++i) {
      const double e = std::exp(-110.0 * double(i) / double(n));
      want.push_back(e / (1 + e));
    }
    p.near("weights", got, want, 1e-6);
  });
}

// The same keys stored elsewhere, among other sequences', and rows in another order: what a sampler's store is to the trainer's batch.
CG_TEST("attention", attention_stores) {
  const Trie t = make_trie({{-1, 70, 0}, {0, 30, 0}, {0, 9, 0}});
  const Sizes s{4, 2, 32};
  const int64_t R = t.rows(), S = 4 * page_size;
  const auto q = random(R * s.heads * s.d, 1), k = random(R * s.kv_heads * s.d, 2), v = random(R * s.kv_heads * s.d, 3);
  const std::vector<int64_t> query{R, s.heads, s.d}, key{R, s.kv_heads, s.d};
  std::vector<int32_t> order;
  for (int64_t i = 0; i < R; ++i) order.push_back(int32_t(i * 10 % R));  // a permutation: R = 109 is prime

  // Pages by position as the sampler fills them: the first branch goes on in its parent's page, the second has one of its own.
  const auto in_pages = [&](int64_t i) { return (i < 64 ? 2 : i < 100 ? 0 : 3) * 64 + t.position[size_t(i)] % 64; };
  const auto anywhere = [&](int64_t i) { return (i * 2 + 101) % 219; };
  for (const bool aligned : {false, true})
    for (const bool paged : {false, true})
      point(std::string(aligned ? "slots in pages" : "slots anywhere") + (paged ? ", keys stored by pages" : ", keys stored by slot"), [&](Point& p) {
        std::vector<int32_t> slot;
        for (int64_t i = 0; i < R; ++i) slot.push_back(int32_t(aligned ? in_pages(i) : anywhere(i)));
        Trie elsewhere = t;
        for (int32_t& g : elsewhere.gather) g = slot[size_t(g)];
        for (size_t i = 0; i < size_t(R); ++i) {
          elsewhere.position[i] = t.position[size_t(order[i])];
          elsewhere.table[i] = t.table[size_t(order[i])];
        }
        const auto plain = everywhere(p, [&](Device& d) {
          const Tensor out = d.make(query);
          d.backend.attention(d.queue(), d.put(q, query), d.put(k, key), d.put(v, key), put(d, t), out, Tensor{}, d.workspace(Op::attention, R, s.heads, s.d));
          return d.get<float>(out);
        });
        const auto stored = everywhere(p, [&](Device& d) {
          const std::vector<int64_t> rows{R, s.heads * s.d};
          const Tensor ks = paged ? d.make({S / page_size, s.kv_heads, s.d, page_size}) : d.make({S, s.kv_heads, s.d}), vs = d.make({S, s.kv_heads, s.d});
          const Tensor slots = d.put(slot), out = d.make(rows), shuffled = d.make(rows), back = d.make(rows), order_t = d.put(order);
          d.backend.store_kv(d.queue(), d.put(k, key), slots, ks);
          d.backend.store_kv(d.queue(), d.put(v, key), slots, vs);
          d.backend.gather_rows(d.queue(), d.put(q, rows), order_t, shuffled);
          const Tensor workspace = d.workspace(Op::attention, R, s.heads, s.d);
          d.backend.attention(d.queue(), shuffled.split(s.d), ks, vs, put(d, elsewhere), out.split(s.d), Tensor{}, workspace);
          d.backend.scatter_rows(d.queue(), out, order_t, back);
          return d.get<float>(back);
        });
        p.same("out", stored, plain);
      });
}

CG_TEST("attention_backward", attention_gradients) {
  for (const Case& c : cases) {
    point(c.name, [&](Point& p) {
      const Trie t = make_trie(c.segments);
      const Sizes s = c.sizes;
      const int64_t R = t.rows(), nq = R * s.heads * s.d, nk = R * s.kv_heads * s.d;
      const auto q = random(nq, 1), k = random(nk, 2), v = random(nk, 3), dout = random(nq, 4);
      const auto got = everywhere(p, [&](Device& d) {
        const std::vector<int64_t> query{R, s.heads, s.d}, key{R, s.kv_heads, s.d};
        const Tensor qs = d.put(q, query), ks = d.put(k, key), vs = d.put(v, key), out = d.make(query), lse = d.make({R, s.heads}), dq = d.make(query),
                     dk = d.make(key), dv = d.make(key);
        const AttentionTable table = put(d, t);
        d.backend.attention(d.queue(), qs, ks, vs, table, out, lse, d.workspace(Op::attention, R, s.heads, s.d));
        d.backend.attention_backward(d.queue(), d.put(dout, query), qs, ks, vs, out, lse, table, dq, dk, dv,
                                     d.workspace(Op::attention_backward, R, s.heads, s.d));
        auto all = d.get<float>(dq);
        for (const Tensor& g : {dk, dv}) {
          const auto more = d.get<float>(g);
          all.insert(all.end(), more.begin(), more.end());
        }
        return all;
      });
      // Central differences by a sample of coordinates of each array: the first, the last, every so many.
      Doubles x[3] = {Doubles(q.begin(), q.end()), Doubles(k.begin(), k.end()), Doubles(v.begin(), v.end())};
      int64_t begin = 0;
      const char* names[] = {"dq", "dk", "dv"};
      for (int which = 0; which < 3; ++which) {
        const int64_t n = int64_t(x[which].size());
        Doubles want;
        std::vector<float> chosen;
        for (int64_t i = 0; i < n; i += i + 1 == n ? 1 : std::min(n - 1 - i, n / 24 + 1)) {
          const double at = x[which][size_t(i)], h = 1e-5;
          const auto loss = [&](double value) {
            x[which][size_t(i)] = value;
            const double sum = dot(twin(t, s, x[0], x[1], x[2]).out, dout);
            x[which][size_t(i)] = at;
            return sum;
          };
          want.push_back((loss(at + h) - loss(at - h)) / (2 * h));
          chosen.push_back(got[size_t(begin + i)]);
        }
        p.near(names[which], chosen, want, 5e-6);
        begin += n;
      }
    });
  }
}

// Blocks on four threads, each adding its number to tiles of its own choice: every tile has them in ascending order.
CG_TEST("attention_backward", attention_turns) {
  point("blocks add to a tile in their order", [](Point& p) {
    const int64_t blocks = 3000, tiles = 7;
    cpu::Turns turns(blocks);
    std::vector<std::vector<int64_t>> added(static_cast<size_t>(tiles));
    std::vector<size_t> wanted(static_cast<size_t>(tiles));
    const auto walks = [](int64_t block, int64_t tile) { return (block * 5 + tile * 3) % 11 < 6; };
    reference::Threads threads(4);
    threads.run(blocks, 1, 1e9, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        cpu::Turns::Turn turn(turns, block);
        for (int64_t tile = 0; tile < tiles; ++tile) {
          if (!walks(block, tile)) continue;
          for (int visit = 0; visit < 2; ++visit) {  // a block of two branches walks a tile twice
            turn.go_to(tile);
            turn.wait();
            added[size_t(tile)].push_back(block);
          }
        }
      }
    });
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const auto& list = added[size_t(tile)];
      for (int64_t block = 0; block < blocks; ++block) wanted[size_t(tile)] += walks(block, tile) ? 2 : 0;
      p.expect(list.size() == wanted[size_t(tile)], "tile " + std::to_string(tile) + ": every block twice");
      for (size_t i = 1; i < list.size(); ++i)
        if (list[i] < list[i - 1] || (i % 2 == 1 && list[i] != list[i - 1])) return p.expect(false, "tile " + std::to_string(tile) + ": out of order");
    }
  });
}

}  // namespace cg::test
