import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { numbers } from '../native/setup.js'

const bytes = 256
const hidden = 16
const headDim = 8
const intermediate = 16

/**
 * Writes a Qwen3 of one layer and some 10,000 parameters that `cg-rollout` and `cg-train` take like any other: every turn that it samples is one of the
 * `words` (an answer, a call) and the end of the turn, two tokens. Which one is chance, and can be learnt.
 *
 * Texts are tokenised by bytes, each word is a token of its own. The hidden state's last two places say whether a word came just now, and 1; the head reads
 * from them that a word or the end follows.
 */
export function makeMicroModel(dir: string, words: readonly string[], seed = 1): void {
  mkdirSync(dir, { recursive: true })
  const added = ['<|im_start|>', '<|im_end|>', ...words].map((content, n) => ({ ...addedToken, id: bytes + n, content }))
  const file = JSON.parse(readFileSync('fixtures/model/tokenizer.json', 'utf8'))
  const vocab = Object.fromEntries(Object.entries(file.model.vocab as Record<string, number>).filter(([, id]) => id < bytes))
  writeJson(join(dir, 'tokenizer.json'), { ...file, added_tokens: added, model: { ...file.model, vocab, merges: [] } })
  cpSync('fixtures/model/chat_template.jinja', join(dir, 'chat_template.jinja'))
  writeJson(join(dir, 'tokenizer_config.json'), { eos_token: '<|im_end|>', tokenizer_class: 'Qwen2Tokenizer' })
  writeJson(join(dir, 'cg.json'), { prompt: 'brief', turn_tokens: 8 })
  writeJson(join(dir, 'config.json'), {
    model_type: 'qwen3',
    hidden_act: 'silu',
    hidden_size: hidden,
    head_dim: headDim,
    num_attention_heads: 2,
    num_key_value_heads: 1,
    num_hidden_layers: 1,
    intermediate_size: intermediate,
    max_position_embeddings: 2048,
    rms_norm_eps: 1e-6,
    rope_theta: 10_000,
    tie_word_embeddings: false,
    vocab_size: bytes + added.length,
    eos_token_id: bytes + 1,
  })
  writeSafetensors(join(dir, 'model.safetensors'), weights(added.length, seed))
}

const addedToken = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: false }
type Tensor = { shape: number[]; data: Float32Array }

function weights(added: number, seed: number): Record<string, Tensor> {
  const next = numbers(seed)
  const vocab = bytes + added
  const random = (scale: number, ...shape: number[]): Tensor => ({
    shape,
    data: Float32Array.from({ length: shape.reduce((a, b) => a * b) }, () => (next() * 2 - 1) * scale),
  })
  const ones = (n: number): Tensor => ({ shape: [n], data: new Float32Array(n).fill(1) })
  const embedding = random(0.5, vocab, hidden)
  const head = random(0.5, vocab, hidden)
  for (let id = 0; id < vocab; id++) {
    const word = id >= bytes + 2
    embedding.data.set([word ? 1 : 0, 1], (id + 1) * hidden - 2)
    head.data.set(word ? [-20, 10] : id === bytes + 1 ? [20, 0] : [-10, -10], (id + 1) * hidden - 2)
  }
  const layer = 'model.layers.0'
  const { q_proj, k_proj, v_proj, o_proj } = {
    q_proj: random(0.2, 2 * headDim, hidden),
    k_proj: random(0.2, headDim, hidden),
    v_proj: random(0.2, headDim, hidden),
    o_proj: random(0.2, hidden, 2 * headDim),
  }
  return {
    'model.embed_tokens.weight': embedding,
    'lm_head.weight': head,
    'model.norm.weight': ones(hidden),
    [`${layer}.input_layernorm.weight`]: ones(hidden),
    [`${layer}.post_attention_layernorm.weight`]: ones(hidden),
    [`${layer}.self_attn.q_proj.weight`]: q_proj,
    [`${layer}.self_attn.k_proj.weight`]: k_proj,
    [`${layer}.self_attn.v_proj.weight`]: v_proj,
    [`${layer}.self_attn.o_proj.weight`]: o_proj,
    [`${layer}.self_attn.q_norm.weight`]: ones(headDim),
    [`${layer}.self_attn.k_norm.weight`]: ones(headDim),
    [`${layer}.mlp.gate_proj.weight`]: random(0.2, intermediate, hidden),
    [`${layer}.mlp.up_proj.weight`]: random(0.2, intermediate, hidden),
    [`${layer}.mlp.down_proj.weight`]: random(0.2, hidden, intermediate),
  }
}

/** https://huggingface.co/docs/safetensors: length of the header, header, tensors. */
function writeSafetensors(file: string, tensors: Record<string, Tensor>): void {
  let end = 0
  const header: Record<string, object> = {}
  for (const [name, { shape, data }] of Object.entries(tensors)) {
    header[name] = { dtype: 'F32', shape, data_offsets: [end, end + data.byteLength] }
    end += data.byteLength
  }
  const text = JSON.stringify(header)
  const padded = Buffer.from(text.padEnd(Math.ceil(text.length / 8) * 8))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(padded.length))
  writeFileSync(file, Buffer.concat([length, padded, ...Object.values(tensors).map(({ data }) => Buffer.from(data.buffer))]))
}

function writeJson(file: string, value: unknown): void {
  writeFileSync(file, JSON.stringify(value))
}
