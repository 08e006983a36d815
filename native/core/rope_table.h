// Cosines and sines of the rotary embedding.
#pragma once

#include <cstdint>
#include <vector>

#include "core/config.h"

namespace cg {

/// Inverse frequencies [D/2] in float64: theta^(−2j/D), stretched as Llama 3.1 does when the config says so (transformers, modeling_rope_utils).
std::vector<double> inverse_frequencies(const RopeConfig&, int64_t head_dim);

/// Appends cos and sin of positions [begin, end), [end − begin, D/2] each: frequency, angle and function in double, rounded once to fp32.
void append_rope_rows(const std::vector<double>& inverse, int64_t begin, int64_t end, std::vector<float>* cos, std::vector<float>* sin);

}  // namespace cg
