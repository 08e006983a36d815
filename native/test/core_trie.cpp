// Tries of random sequences against what they mean: every sequence finds its own tokens through the lists, and nothing else.
#include <algorithm>
#include <memory>
#include <random>

#include "core/error.h"
#include "core/trie.h"
#include "test/tap.h"

namespace cg::test {

namespace {

// Few different tokens and starts, so that prefixes are shared at every length; some sequences repeat.
std::vector<Sequence> random_sequences(unsigned seed, int count, int vocab) {
  std::mt19937 random(seed);
  std::vector<Sequence> sequences;
  for (int i = 0; i < count; ++i) {
    if (i > 2 && random() % 5 == 0) {
      sequences.push_back(sequences[random() % sequences.size()]);
      continue;
    }
    Sequence s;
    s.start = random() % 4 == 0 ? 3 : 0;
    const auto n = int32_t(1 + random() % 12);
    for (int32_t j = 0; j < n; ++j) s.ids.push_back(int32_t(random() % unsigned(vocab)));
    for (int32_t at = 1; at < n;) {
      const auto end = std::min<int32_t>(n, at + 1 + int32_t(random() % 3));
      if (random() % 2) s.spans.emplace_back(at, end);
      at = end + int32_t(random() % 2);
    }
    s.temperature = random() % 2 ? 1.0f : 0.7f;
    sequences.push_back(s);
  }
  return sequences;
}

TrieBatch build(const std::vector<Sequence>& sequences) {
  std::vector<const Sequence*> list;
  for (const Sequence& s : sequences) list.push_back(&s);
  return build_trie(list);
}

// Row of a sequence's token i, found through the list of its last row.
int32_t row_of(const TrieBatch& b, int32_t last, int64_t i) { return b.gather[size_t(b.table[size_t(last)] + i)]; }

void check(Point& p, const std::vector<Sequence>& sequences) {
  const TrieBatch b = build(sequences);
  const auto rows = int32_t(b.rows());
  size_t loss_token = 0;
  for (size_t s = 0; s < sequences.size(); ++s) {
    const Sequence& sequence = sequences[s];
    const int32_t last = b.last_row[s];
    for (int64_t i = 0; i < sequence.rows(); ++i) {
      const auto row = size_t(row_of(b, last, i));
      p.expect(b.ids[row] == sequence.ids[size_t(i)], "a list leads to another token");
      p.expect(b.position[row] == sequence.start + i && b.first[row] == sequence.start, "a row has another position");
      for (int64_t j = 0; j <= i; ++j) p.expect(row_of(b, int32_t(row), j) == row_of(b, last, j), "a row sees other ancestors than its descendants do");
      p.expect(int32_t(row) <= last && last < b.subtree_end[row], "a descendant lies outside its ancestor's range");
    }
    for (const auto& [begin, end] : sequence.spans)
      for (int32_t i = begin; i < end; ++i, ++loss_token) {
        const auto entry = size_t(b.entry_of[loss_token]);
        p.expect(b.head_row[size_t(b.entry_row[entry])] == row_of(b, last, i - 1), "a loss token has another predictor");
        p.expect(b.entry_target[entry] == sequence.ids[size_t(i)] && b.entry_temperature[entry] == sequence.temperature, "a loss token has another target");
      }
  }
  p.expect(loss_token == size_t(b.entries()), "entries are left over");
  p.expect(std::is_sorted(b.entry_row.begin(), b.entry_row.end()) && std::is_sorted(b.head_row.begin(), b.head_row.end()), "entries are not in order of rows");

  // slot = row: row i is seen by exactly the rows i .. subtree_end[i] − 1.
  for (int32_t i = 0; i < rows; ++i)
    for (int32_t j = 0; j < rows; ++j) {
      const int64_t depth = b.position[size_t(j)] - b.first[size_t(j)];
      bool sees = false;
      for (int64_t k = 0; k <= depth; ++k) sees |= row_of(b, j, k) == i;
      p.expect(sees == (i <= j && j < b.subtree_end[size_t(i)]), "subtree_end is not where a row stops being seen");
    }
  // No two rows are the same token after the same ancestors.
  for (int32_t i = 0; i < rows; ++i)
    for (int32_t j = 0; j < i; ++j) {
      if (b.ids[size_t(i)] != b.ids[size_t(j)] || b.position[size_t(i)] != b.position[size_t(j)] || b.first[size_t(i)] != b.first[size_t(j)]) continue;
      const int64_t depth = b.position[size_t(i)] - b.first[size_t(i)];
      p.expect(depth > 0 && row_of(b, i, depth - 1) != row_of(b, j, depth - 1), "a prefix stands twice");
    }
}

}  // namespace

CG_TEST("trie", trie_lists) {
  for (unsigned seed = 0; seed < 30; ++seed)
    point("random sequences " + std::to_string(seed), [&](Point& p) { check(p, random_sequences(seed, 1 + int(seed % 9), 2 + int(seed % 3))); });
  point("nothing, one token, one sequence twice", [](Point& p) {
    check(p, {});
    Sequence one;
    one.ids = {5};
    check(p, {one});
    Sequence pair;
    pair.ids = {1, 2, 3};
    pair.spans = {{1, 3}};
    check(p, {pair, pair});
    p.expect(build({pair, pair}).rows() == 2, "the last target needs no row, and equal sequences share theirs");
  });
  point("rows that a sequence would bring", [](Point& p) {
    const auto sequences = random_sequences(3, 9, 2);
    TrieBuilder builder;
    for (const Sequence& s : sequences) {
      const int64_t before = builder.rows(), more = builder.new_rows(s);
      builder.add(s);
      p.expect(builder.rows() == before + more, "new_rows is not what add adds");
    }
  });
}

}  // namespace cg::test
