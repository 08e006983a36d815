// How the LoRA kernels cut their outputs into register tiles. Included by kernel files (no guard: once per instruction set).
namespace cg::cpu::CG_ISA::lora {

#if CG_ISA_LEVEL >= 2
/// Rows of a tile of 1, 2 or 3 vectors: 16 or 24 of 32 registers hold chains. Halved, they go down to one row.
constexpr int tile_height(int vectors) { return vectors == 1 ? 16 : 8; }
/// How many of the n vectors that are left go together.
CG_INLINE int64_t vectors_for(int64_t n) { return n == 3 || n > 4 ? 3 : n == 4 ? 2 : n; }
#else
constexpr int tile_height(int) { return CG_ISA_LEVEL == 1 ? 6 : 4; }  // 12 of 16 registers
CG_INLINE int64_t vectors_for(int64_t) { return 1; }
#endif

}  // namespace cg::cpu::CG_ISA::lora
