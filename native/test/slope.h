// Central differences of a float64 function.
#pragma once

#include <cmath>
#include <vector>

namespace cg::test {

/// d f / d x[i] for every i: (f(x + h) − f(x − h)) / 2h, h = 1e-5 · max(1, |x[i]|), relative error about 1e-9.
template <class F>
std::vector<double> slope(std::vector<double> x, const F& f) {
  std::vector<double> result(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double at = x[i], h = 1e-5 * std::max(1.0, std::abs(at));
    x[i] = at + h;
    const double up = f(x);
    x[i] = at - h;
    const double down = f(x);
    x[i] = at;
    result[i] = (up - down) / (2 * h);
  }
  return result;
}

template <class A, class B>
double dot(const A& a, const B& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += double(a[i]) * double(b[i]);
  return sum;
}

}  // namespace cg::test
