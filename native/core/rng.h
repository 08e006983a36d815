// Counter-based random numbers: Philox-4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011, section 4.3).
//
// A number is a function of its key and counter and of nothing else. There is no state, so a draw does not depend on what else was drawn, where, or when.
#pragma once

#include <array>
#include <cstdint>

#include "core/sampling.h"

namespace cg {

/// Ten rounds of Philox on a 128-bit counter (least significant word first) with a 64-bit key.
constexpr std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * counter[0], p1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {uint32_t(p1 >> 32) ^ counter[1] ^ key[0], uint32_t(p1), uint32_t(p0 >> 32) ^ counter[3] ^ key[1], uint32_t(p0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

/// A double in [0, 1), a multiple of 2^-53, for one token of one rollout: key = seed, counter = (rollout, position).
constexpr double uniform(SampleKey at) {
  const auto words = philox({uint32_t(at.rollout), uint32_t(at.rollout >> 32), uint32_t(at.position), uint32_t(at.position >> 32)},
                            {uint32_t(at.seed), uint32_t(at.seed >> 32)});
  return double((uint64_t(words[0]) << 32 | words[1]) >> 11) * 0x1p-53;
}

}  // namespace cg
