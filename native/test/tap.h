// Points of the native test, printed as TAP. A test registers itself with an area (an op's name, as a rule) and a function that makes points.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace cg::test {

/// One line of the report: collects what is wrong with one shape of one op.
class Point {
 public:
  void expect(bool holds, const std::string& what) {
    if (!holds) wrong.push_back(what);
  }
  /// Every element within `tolerance` · max(1, largest |want|); no NaN.
  template <class A, class B>
  void near(const std::string& what, const std::vector<A>& got, const std::vector<B>& want, double tolerance);
  template <class T>
  void same(const std::string& what, const std::vector<T>& a, const std::vector<T>& b) {
    expect(a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0), what + ": bits differ");
  }
  std::vector<std::string> wrong;
};

/// Runs one point and prints its line; an exception makes it fail.
void point(const std::string& name, const std::function<void(Point&)>& body);

struct Register {
  Register(const char* area, void (*run)());
};
#define CG_TEST(area, name)                                  \
  static void name();                                        \
  static const ::cg::test::Register register_##name(area, name); \
  static void name()

/// Runs the registered tests whose area is among `areas` (all when empty) in order of area; returns the exit status and prints the summary.
int run_tests(const std::vector<std::string>& areas);

template <class A, class B>
void Point::near(const std::string& what, const std::vector<A>& got, const std::vector<B>& want, double tolerance) {
  if (got.size() != want.size()) return expect(false, what + ": " + std::to_string(got.size()) + " elements instead of " + std::to_string(want.size()));
  double largest = 1, worst = 0;
  size_t at = 0;
  for (const B& w : want) largest = std::max(largest, std::abs(double(w)));
  for (size_t i = 0; i < got.size(); ++i) {
    const double error = std::abs(double(got[i]) - double(want[i]));
    if (error > worst || std::isnan(error)) worst = error, at = i;
    if (std::isnan(error)) break;
  }
  if (worst <= tolerance * largest) return;
  char text[200];
  std::snprintf(text, sizeof text, "%s: element %zu is %.9g instead of %.9g (off by %.2g, allowed %.2g)", what.c_str(), at, double(got[at]), double(want[at]),
                worst, tolerance * largest);
  expect(false, text);
}

}  // namespace cg::test
