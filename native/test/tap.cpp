#include "test/tap.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <map>

namespace cg::test {

namespace {
std::map<std::string, std::vector<void (*)()>>& tests() {
  static std::map<std::string, std::vector<void (*)()>> all;
  return all;
}
int passed = 0, failed = 0;
std::string current;
}  // namespace

Register::Register(const char* area, void (*run)()) { tests()[area].push_back(run); }

void point(const std::string& name, const std::function<void(Point&)>& body) {
  Point p;
  try {
    body(p);
  } catch (const std::exception& error) {
    p.expect(false, std::string("threw: ") + error.what());
  }
  ++(p.wrong.empty() ? passed : failed);
  std::printf("%s %d - %s %s\n", p.wrong.empty() ? "ok" : "not ok", passed + failed, current.c_str(), name.c_str());
  for (const auto& line : p.wrong) std::printf("  # %s\n", line.c_str());
  std::fflush(stdout);
}

int run_tests(const std::vector<std::string>& areas) {
  std::printf("TAP version 14\n");
  for (const auto& area : areas)
    if (!tests().contains(area)) {
      std::string known;
      for (const auto& [name, list] : tests()) known += " " + name;
      std::fprintf(stderr, "native-test: no area \"%s\"; there are%s\n", area.c_str(), known.c_str());
      return 2;
    }
  for (const auto& [area, list] : tests()) {
    if (!areas.empty() && std::find(areas.begin(), areas.end(), area) == areas.end()) continue;
    current = area;
    for (const auto run : list) run();
  }
  std::printf("1..%d\n%d passed, %d failed\n", passed + failed, passed, failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace cg::test
