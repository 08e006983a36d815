// native-test [--backend reference|reference-remote|cpu] [AREA …]: the op table and what belongs to it. TAP on stdout; status 1 when a point failed.
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "reference/isa.h"
#include "test/device.h"
#include "test/tap.h"

int main(int argc, char** argv) {
  std::vector<std::string> areas;
  try {
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      if (word == "--backend" && i + 1 < argc) cg::test::choose_primary(argv[++i]);
      else if (word.starts_with("--backend=")) cg::test::choose_primary(word.substr(10));
      else if (word.starts_with("-")) throw std::invalid_argument("unknown option " + word);
      else areas.push_back(word);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "native-test: %s\nusage: native-test [--backend reference|reference-remote|cpu] [AREA ...]\n", error.what());
    return 2;
  }
  std::printf("# %s; widest instruction set: %s\n", cg::test::primary().description().c_str(), cg::reference::name_of(cg::reference::best_isa()));
  return cg::test::run_tests(areas);
}
