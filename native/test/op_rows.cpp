// Ops that only move or add rows, memory, and when errors come.
#include <numeric>

#include "core/error.h"
#include "test/device.h"
#include "test/tap.h"

namespace cg::test {

CG_TEST("rows", embedding) {
  struct Case {
    int64_t V, H;
    std::vector<int32_t> ids;
  };
  for (const DType precision : precisions)
    for (const Case& c : {Case{1, 1, {0}}, {33, 7, {32, 0, 31, 32}}, {100, 144, {}}, {300, 5, {299, 150}}})
      point("embed " + std::to_string(c.ids.size()) + " of " + std::to_string(c.V) + name_of(precision), [&](Point& p) {
        const auto w = random(c.V * c.H, 1), table = as(precision, w);
        const auto R = int64_t(c.ids.size());
        std::vector<float> want;
        for (const int32_t id : c.ids) want.insert(want.end(), table.begin() + id * c.H, table.begin() + (id + 1) * c.H);
        const auto embed = [&](Device& d) {
          const Tensor y = d.make({R, c.H});
          d.backend.embed(d.queue(), d.weight(w, c.V, c.H), d.put(c.ids), y);
          return d.get<float>(y);
        };
        p.same("y", everywhere(p, embed, precision), want);
      });
}

CG_TEST("rows", gather_scatter_add) {
  for (const int64_t n : {0, 1, 5, 130})
    point("gather, scatter, add " + std::to_string(n), [&](Point& p) {
      const int64_t H = 19, all = 131;
      const auto x = random(all * H, 1), y = random(all * H, 2);
      std::vector<int32_t> index;
      for (int64_t i = 0; i < n; ++i) index.push_back(int32_t(i * 50 % all));
      auto want = y;
      for (const int32_t row : index)
        for (int64_t j = 0; j < H; ++j) want[size_t(row * H + j)] = x[size_t(row * H + j)];
      for (size_t i = 0; i < want.size(); ++i) want[i] += x[i];
      p.same("y", everywhere(p, [&](Device& d) {
               const Tensor xs = d.put(x, {all, H}), ys = d.put(y, {all, H}), some = d.make({n, H}), list = d.put(index);
               d.backend.gather_rows(d.queue(), xs, list, some);
               d.backend.scatter_rows(d.queue(), some, list, ys);
               d.backend.add(d.queue(), xs, ys);
               return d.get<float>(ys);
             }),
             want);
    });
}

CG_TEST("rows", add_flat) {
  for (const int64_t n : {0, 1, 33, 40000})
    point("add a flat span of " + std::to_string(n), [&](Point& p) {
      const auto x = random(n, 1), y = random(n, 2);
      auto want = y;
      for (size_t i = 0; i < want.size(); ++i) want[i] += x[i];
      p.same("y", everywhere(p, [&](Device& d) {
               const Tensor ys = d.put(y);
               d.backend.add(d.queue(), d.put(x), ys);
               return d.get<float>(ys);
             }),
             want);
    });
}

CG_TEST("memory", transfers) {
  point("an uploaded array may change at once", [&](Point& p) {
    p.same("bytes", everywhere(p, [&](Device& d) {
             std::vector<float> host = random(1000, 1);
             const Tensor t = d.make({1000});
             d.backend.upload(d.queue(), host.data(), t);
             std::fill(host.begin(), host.end(), 7.0f);
             return d.get<float>(t);
           }),
           random(1000, 1));
  });
  point("fill and strided copy", [&](Point& p) {
    std::vector<float> want(24, 2.5f);
    const auto x = random(2 * 3 * 4, 1);
    for (int64_t i = 0; i < 2; ++i)  // [2, 3, 4] into the middle two columns' place of a [2, 3, 4] whose first row is skipped
      for (int64_t j = 1; j < 3; ++j)
        for (int64_t k = 0; k < 2; ++k) want[size_t(i * 12 + j * 4 + k + 1)] = x[size_t(i * 12 + j * 4 + k + 2)];
    p.same("to", everywhere(p, [&](Device& d) {
             Tensor from = d.put(x, {2, 3, 4}), to = d.make({2, 3, 4});
             d.backend.fill(d.queue(), to, 2.5f);
             Tensor a = from, b = to;
             a.offset += (4 + 2) * 4;
             b.offset += (4 + 1) * 4;
             a.shape = b.shape = {2, 2, 2};
             d.backend.copy(d.queue(), a, b);
             return d.get<float>(to);
           }),
           want);
  });
  point("fill of integers", [&](Point& p) {
    Device d(primary());
    const Tensor t = d.make({5}, DType::i32), k = d.make({3}, DType::u64);
    d.backend.fill(d.queue(), t, -3);
    d.backend.fill(d.queue(), k, 9);
    p.same("i32", d.get<int32_t>(t), std::vector<int32_t>(5, -3));
    p.same("u64", d.get<uint64_t>(k), std::vector<uint64_t>(3, 9));
  });
  point("nothing at all", [&](Point& p) {
    everywhere(p, [&](Device& d) {
      const Tensor t = d.make({0, 4});
      d.backend.fill(d.queue(), t, 1);
      d.backend.copy(d.queue(), t, t);
      d.backend.add(d.queue(), t, t);
      return d.get<float>(t);
    });
  });
  point("arenas are aligned, released and used again", [&](Point& p) {
    Backend& b = primary();
    const BufferId first = b.arena(1000), second = b.arena(0);
    b.release(first);
    const BufferId third = b.arena(10);
    p.expect(third == first, "a released id is given out again");
    b.release(second);
    b.release(third);
  });
  point("too much memory is E_MEMORY", [&](Point& p) {
    try {
      primary().arena(int64_t{1} << 60);
      p.expect(false, "no error");
    } catch (const Error& error) {
      p.expect(error.code() == "E_MEMORY", "code " + error.code());
    }
  });
  point("a weight of rank 3 or of integers is E_SHAPE", [&](Point& p) {
    const int64_t shape[] = {1, 1, 1};
    const float one = 1;
    for (const auto& [rank, dtype] : {std::pair{3, DType::f32}, {0, DType::f32}, {2, DType::i32}}) try {
        primary().load_weight("w", &one, dtype, std::span(shape, size_t(rank)));
        p.expect(false, "no error");
      } catch (const Error& error) {
        p.expect(error.code() == "E_SHAPE", "code " + error.code());
      }
  });
}

CG_TEST("memory", errors_wait) {
  point("a bad index surfaces in download, once, and stops what follows", [&](Point& p) {
    everywhere(p, [&](Device& d) {
      const Tensor x = d.put(random(8, 1), {2, 4}), y = d.put(std::vector<float>(4, 5), {1, 4}), index = d.put(std::vector<int32_t>{2});
      d.backend.gather_rows(d.queue(), x, index, y);  // returns
      d.backend.fill(d.queue(), y, 9);                // skipped
      std::string code;
      try {
        d.get<float>(y);
      } catch (const Error& error) {
        code = error.code();
      }
      p.expect(code == "E_INDEX", "code " + code);
      d.backend.wait(d.queue());
      return d.get<float>(y);
    });
    Device d(primary());
    const Tensor ids = d.put(std::vector<int32_t>{3});
    d.backend.embed(d.queue(), d.weight(random(6, 1), 3, 2), ids, d.make({1, 2}));
    bool threw = false;
    try {
      d.backend.wait(d.queue());
    } catch (const Error&) {
      threw = true;
    }
    p.expect(threw, "wait tells it too");
  });
}

}  // namespace cg::test
