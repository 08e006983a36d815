// Core's own structures: the reduction tree, the key/value cache's pages, the JSON reader.
#include <algorithm>
#include <cstring>
#include <map>
#include <random>

#include "core/error.h"
#include "core/json.h"
#include "core/kv_cache.h"
#include "core/reduce.h"
#include "test/device.h"
#include "test/tap.h"

namespace cg::test {

namespace {

// The tree as numerics.md words it: zero leaves up to a power of two, neighbours added level by level.
std::vector<float> padded_tree(std::vector<std::vector<float>> leaves, size_t size) {
  size_t width = 1;
  while (width < leaves.size()) width *= 2;
  leaves.resize(width, std::vector<float>(size, 0.0f));
  for (; width > 1; width /= 2)
    for (size_t i = 0; i < width / 2; ++i)
      for (size_t j = 0; j < size; ++j) leaves[i][j] = leaves[2 * i][j] + leaves[2 * i + 1][j];
  return leaves[0];
}

std::string refusal(const std::string& text) {
  try {
    parse_json(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

CG_TEST("reduce", tree_of_groups) {
  std::mt19937 random(1);
  for (const std::vector<int64_t>& indices : std::vector<std::vector<int64_t>>{{0}, {0, 1, 2}, {1, 2, 5, 6, 7}, {3, 12}, {0, 1, 2, 3, 4, 5, 6, 7, 8}})
    point(std::to_string(indices.size()) + " leaves up to index " + std::to_string(indices.back()), [&](Point& p) {
      Backend& backend = primary();
      const auto queue = backend.queue();
      std::vector<std::vector<float>> leaves(size_t(indices.back()) + 1, std::vector<float>(5, 0.0f));
      for (const int64_t i : indices)
        for (float& x : leaves[size_t(i)]) x = std::ldexp(float(random()), int(random() % 40) - 50);
      TreeSum sum(backend, 5);
      auto total = sum.sum(*queue, indices, [&](size_t i, Tensor into) {
        backend.upload(*queue, leaves[size_t(indices[i])].data(), into);
        return true;
      });
      std::vector<float> got(5);
      backend.download(*queue, total->tensor(), got.data());
      p.same("sum", got, padded_tree(leaves, 5));
    });
  point("zero leaves and none", [](Point& p) {
    const auto queue = primary().queue();
    TreeSum sum(primary(), 3);
    const std::vector<int64_t> indices{0, 1, 4};
    p.expect(!sum.sum(*queue, indices, [](size_t, Tensor) { return false; }), "zero leaves have a sum");
    p.expect(!sum.sum(*queue, {}, [](size_t, Tensor) { return true; }), "no leaves have a sum");
  });
}

CG_TEST("kv_cache", slots_and_pages) {
  point("branches get slots of their own, at their position in a page, and give them back", [](Point& p) {
    Model model;
    model.backend = make_reference_backend(1);
    model.config.layers = 2, model.config.heads = model.config.kv_heads = 1, model.config.head_dim = 4;
    const auto queue = model.backend->queue();
    KvCache cache(model);
    std::mt19937 random(7);
    std::vector<std::vector<int32_t>> paths;
    std::map<int32_t, int32_t> owner;  // slot to node
    for (int round = 0; round < 400; ++round) {
      if (!paths.empty() && random() % 3 == 0) {
        const size_t which = random() % paths.size();
        for (; !paths[which].empty(); paths[which].pop_back()) cache.release(paths[which].back());
        paths.erase(paths.begin() + long(which));
        continue;
      }
      std::vector<int32_t> path{cache.root({random() % 2, 0})};
      cache.retain(path[0]);
      const int length = 1 + int(random() % 200);
      for (int i = 0; i < length; ++i) {
        const auto token = int32_t(random() % 20 == 0);
        int32_t node = cache.find(path.back(), token);
        if (node < 0) node = cache.extend(*queue, path.back(), token);
        cache.retain(node);
        path.push_back(node);
        p.expect(cache.slot(node) % page_size == i % page_size, "a slot stands at another place of its page");
      }
      paths.push_back(path);
    }
    for (const auto& path : paths)
      for (size_t i = 1; i < path.size(); ++i) {
        const auto [known, fresh] = owner.emplace(cache.slot(path[i]), path[i]);
        p.expect(fresh || known->second == path[i], "two nodes have one slot");
      }
    p.expect(int64_t(owner.size()) == cache.slots_in_use(), "slots in use are not those of the paths");
    for (auto& path : paths)
      for (; !path.empty(); path.pop_back()) cache.release(path.back());
    p.expect(cache.slots_in_use() == 0, "slots are left when all is released");
    cache.retain(cache.root({0, 0}));
    p.expect(cache.find(cache.root({0, 0}), 0) < 0, "a released prefix is still known");
  });
}

CG_TEST("json", strict_json) {
  point("what is refused, and where", [](Point& p) {
    const std::vector<std::pair<std::string, std::string>> cases{{"", "ends where a value should be"},
                                                                 {"{\"a\":1,}", "line 1, column 8: expected a key"},
                                                                 {"[1,]", "not a JSON value"},
                                                                 {"{\"a\":1,\n\"a\":2}", "line 2, column 1: the key \"a\" stands twice"},
                                                                 {"01", "may not begin with 0"},
                                                                 {"1.", "digit must follow"},
                                                                 {"1e", "digit must follow"},
                                                                 {"+1", "not a JSON value"},
                                                                 {"NaN", "not a JSON value"},
                                                                 {"\"\n\"", "control character"},
                                                                 {"\"\\x\"", "unknown escape"},
                                                                 {"\"\\ud800\"", "lone surrogate"},
                                                                 {"\"\\ud800\\u0041\"", "lone surrogate"},
                                                                 {"\"\\u12\"", "four hexadecimal digits"},
                                                                 {"\"a", "ends inside a string"},
                                                                 {"\"\xff\"", "not UTF-8"},
                                                                 {"\"\xc0\xaf\"", "not UTF-8"},
                                                                 {"\"\xed\xa0\x80\"", "not UTF-8"},
                                                                 {"1 2", "after the end"},
                                                                 {"\xef\xbb\xbf{}", "not a JSON value"},
                                                                 {std::string("{}\0", 3), "after the end"},
                                                                 {std::string(100, '['), "nested more than 64 deep"}};
    for (const auto& [text, what] : cases) p.expect(refusal(text).find(what) != std::string::npos, json_quote(text) + ": " + refusal(text));
  });
  point("what is read", [](Point& p) {
    const Json json = parse_json(" {\"a\": [1, -2.5e3, true, null], \"\\u00e9\\ud83d\\ude00\\/\": \"\\\"\\n\"} ");
    p.expect(json.find("a")->items[1].number() == -2500 && json.find("a")->items[2].boolean && json.find("\xc3\xa9\xf0\x9f\x98\x80/")->text == "\"\n",
             "values");
    int64_t n = 0;
    p.expect(json.find("a")->items[0].integer(&n) && n == 1 && !json.find("a")->items[1].integer(&n) && !parse_json("9223372036854775808").integer(&n),
             "integers");
    p.expect(parse_json(json_quote("\x01\"\\\n\xc3\xa9")).text == "\x01\"\\\n\xc3\xa9", "quoting comes back");
  });
}

}  // namespace cg::test
