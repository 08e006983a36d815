/**
 * The typed boundary of the native engine: what crosses between TypeScript and C++, and nothing else does.
 *
 * Typed arrays cross by copy. Every call that computes runs off the main thread and returns a promise; user errors reject with an EngineError that has a `code`
 * (E_CHECKPOINT, E_ADAPTER, E_STATE, E_VOCABULARY, E_CONTEXT, E_SHAPE, E_SESSION, E_MEMORY, E_NAN, E_IN_TRAINING, E_CANCELLED, E_DISPOSED …). 64-bit keys are BigInt.
 */

export type EngineErrorShape = Error & { code: string }

/** `cpu` is what people run; the others are its plain twin, and that as a device would be. */
export type BackendName = 'cpu' | 'reference' | 'reference-remote'

/** Precision of the products with frozen weights; everything else is fp32 (native/core/numerics.md). */
export type Precision = 'fp32' | 'bf16'

export type ModelOptions = {
  backend: BackendName
  /** 0: as many as there are cores. Results do not depend on it. */
  threads: number
  /** Default: fp32. */
  dtype?: Precision
  /** Rows above it are padding: masked in sampling and training, refused as ids. Default: the embedding's rows. */
  realVocab?: number
}

export type ModelInfo = {
  architecture: 'qwen3' | 'qwen2' | 'llama'
  layers: number
  hidden: number
  heads: number
  kvHeads: number
  headDim: number
  intermediate: number
  vocab: number
  realVocab: number
  maxPositions: number
  tied: boolean
  parameters: number
  /** Family of log-prob bits: backend kind and dtype, e.g. `ref-2/fp32`. */
  logprobKind: string
  /** Device and instruction set in words. */
  device: string
}

/** The seven linears that LoRA may adapt, by their PEFT names. */
export type LoraTarget = 'q_proj' | 'k_proj' | 'v_proj' | 'o_proj' | 'gate_proj' | 'up_proj' | 'down_proj'

export type LoraConfig = { rank: number; alpha: number; targets: LoraTarget[]; rslora?: boolean }

/** What a trainer changes. */
export interface Trained {
  readonly parameters: number
  /** Writes its files into an existing directory. */
  save(dir: string): Promise<void>
  dispose(): void
}

/** Its files are PEFT's: adapter_config.json and adapter_model.safetensors. */
export interface Adapter extends Trained {
  readonly config: LoraConfig
}

/** How a checkpoint's tensors are stored. */
export type StoredType = 'fp32' | 'bf16' | 'fp16'

/** All weights of a model, in training. Its file is model.safetensors; the model computes with what that file would hold. */
export type Weights = Trained

export type SamplingParams = {
  /** 0 is greedy. */
  temperature: number
  topK: number
  topP: number
  minP: number
  repetitionPenalty: number
}

export type GenerateRequest = {
  /** The whole context. What it shares with a live sequence's tokens is not computed again. */
  ids: Int32Array
  /** Not one that a trainer is updating meanwhile (E_ADAPTER): sample from its snapshot. */
  adapter: Adapter | null
  sampling: SamplingParams
  /** Generation ends with (and includes) one of these. */
  stopIds: Int32Array
  maxTokens: number
  /** Draws depend on (seed, rollout, position) only. */
  seed: bigint
  rollout: bigint
  /** Keys and values stay cached under this name for the next turn, until `release`. One request at a time (E_SESSION). */
  session: string
}

export type Generation = {
  /** Generated ids, the stop id included. */
  ids: Int32Array
  /** One per generated id: of the distribution at the sampling temperature (greedy: T = 1), before penalty and cuts. */
  logprobs: Float32Array
  /** `stop`: a stop id came; `length`: maxTokens or the model's context is used up. */
  stop: 'stop' | 'length'
}

/** Continuous batching: requests submitted while others run join their batch; a group's shared prompt is computed once. */
export interface Sampler {
  generate(request: GenerateRequest, signal?: AbortSignal): Promise<Generation>
  release(session: string): void
  stats(): { prefillTokens: number; sharedTokens: number; decodeTokens: number; steps: number }
  close(): Promise<void>
}

/** One rollout (or one SFT row) of a batch. */
export type TrainSequence = {
  ids: Int32Array
  /** Absolute position of ids[0]; 0 unless a test says otherwise. */
  start?: number
  /** Pairs [begin, end) into ids: the generated tokens, which carry loss. ids[0] can carry none. */
  spans: Int32Array
  /** One per loss token: sampler's log-probs; absent: old = current. */
  old?: Float32Array
  /** One per loss token (or absent when KL is off): reference log-probs. Absent with KL on: the engine computes them with `klAdapter`. */
  ref?: Float32Array
  /** One per span. */
  advantages?: Float32Array
  /** One per span; 1 where absent. */
  weights?: Float32Array
  temperature: number
}

/** All sequences of one prompt: one trie, one leaf of the gradient's reduction tree at `index`. */
export type TrainGroup = { index: number; sequences: TrainSequence[] }

export type Aggregation = 'grpo' | 'bnpo' | 'dr_grpo' | 'dapo' | 'gspo' | 'cispo'

export type LossOptions =
  | { kind: 'weighted' /* SFT and AWR: −w/|V|/B */ }
  | {
      kind: 'policy'
      aggregation: Aggregation
      epsilonLow: number
      epsilonHigh: number
      cispoCap: number
      /** k3 coefficient β; 0 costs no reference pass. */
      kl: number
      klBiasCorrection: boolean
      /** For dr_grpo. */
      maxCompletionLength: number
    }

/** Denominators are those of the whole optimiser step, whatever the split. */
export type StepDenominators = {
  /** Rollouts of the step, dropped and faulty ones included. */
  rollouts: number
  /** Loss tokens of the step. */
  tokens: number
}

export type StepRequest = {
  groups: TrainGroup[]
  loss: LossOptions
  denominators: StepDenominators
  /** Reference policy of the KL term: null is the base model. */
  klAdapter?: Adapter | null
  lr: number
  clip: number
  /** Rows of one pass through the model; a larger group is split after whole rollouts. */
  maxRowsPerPass: number
  /** Bytes of a pass: what fits is kept for the backward pass, the rest computed again; no bit depends on it. Default: all is kept. */
  memoryBudget?: number
}

export type StepStats = {
  loss: number
  kl: number
  entropy: number
  clipFraction: number
  gradNorm: number
  /** Rows of the sequences, and of the tries. */
  tokens: number
  uniqueTokens: number
  lossTokens: number
  /** The sampler's log-probs against the trainer's, d = current − old: mean exp(d) − d − 1, mean exp(|d|), and the largest |d| in nats. 0, 1 and 0 without `old`. */
  mismatch: { kl: number; multProbError: number; max: number }
  /** NaN or infinity in loss or gradient: nothing was updated. */
  skipped: boolean
  /** Of the largest pass: bytes planned, and what it kept for the backward pass. */
  passBytes: number
  kept: Keep | 'nothing'
}

/** What a forward pass keeps for the backward pass; the rest is computed again there. */
export type Keep = 'everything' | 'all-but-mlp' | 'layer-inputs'

export type OptimizerOptions = { beta1: number; beta2: number; eps: number; weightDecay: number }

export interface Trainer<T extends Trained = Adapter> {
  /** What is being trained; a view that follows the updates. */
  readonly trained: T
  readonly step: number
  train(request: StepRequest, signal?: AbortSignal): Promise<StepStats>
  /** Mean loss of sequences without updating (evaluation). */
  evaluate(request: Omit<StepRequest, 'lr' | 'clip'>, signal?: AbortSignal): Promise<StepStats>
  /** The gradient of a step before clipping, by the tensors' names (an adapter's as PEFT has them), without updating; for checks. */
  gradient(
    request: Omit<StepRequest, 'lr' | 'clip'>,
  ): Promise<{ stats: StepStats; tensors: { name: string; shape: number[]; values: Float32Array }[] }>
  /** A frozen copy of the adapter as it is now (E_ADAPTER when a whole model is trained). */
  snapshot(): Promise<Adapter>
  /** m, v and the step count as one safetensors file, with the weights in fp32 where their own file rounds them; exact. */
  saveState(file: string): Promise<void>
  loadState(file: string): Promise<void>
  dispose(): void
}

export type ScoreRequest = { sequences: TrainSequence[]; adapter: Adapter | null; entropy?: boolean }

export interface Model {
  readonly info: ModelInfo
  newAdapter(config: LoraConfig, seed: bigint): Promise<Adapter>
  /** PEFT adapter directory; refused (E_ADAPTER) when its tensors do not fit this model. */
  loadAdapter(dir: string): Promise<Adapter>
  sampler(options: { maxBatch: number }): Sampler
  /**
   * Begins training of all weights, which are stored as `dtype` (default: as they were). The model is for this training alone from now on: it can be scored, but
   * not sampled from, nor can adapters of it be trained (E_IN_TRAINING).
   */
  weights(options?: { dtype?: StoredType }): Promise<Weights>
  trainer<T extends Trained>(trained: T, optimizer: OptimizerOptions): Trainer<T>
  /** Log-prob of every loss token, flattened over sequences in order; entropies likewise when asked for. */
  score(request: ScoreRequest): Promise<{ logprobs: Float32Array; entropy?: Float32Array }>
  /** Logits of the last token of each sequence, [sequences, vocab rows]; for checks against other tools. */
  lastLogits(request: ScoreRequest): Promise<Float32Array>
  dispose(): void
}

/** A policy loss and its derivative by each current log-prob, without a model; [rows][tokens] ragged, mask 0 = no loss. */
export type PolicyLossRequest = {
  current: Float64Array[]
  old: Float64Array[]
  ref?: Float64Array[]
  mask: Uint8Array[]
  advantages: Float64Array
  loss: Extract<LossOptions, { kind: 'policy' }>
  denominators: StepDenominators
}

/** What the addon exports. */
export interface Engine {
  loadModel(dir: string, options: ModelOptions): Promise<Model>
  /** A model of this config.json with random weights: normal with deviation initializer_range, biases 0, norms 1. */
  randomModel(config: string, options: ModelOptions & { seed: bigint }): Promise<Model>
  /** Reads any safetensors file: names, shapes, dtypes and values as float64 (integers above 2^53 are refused). Throws E_CHECKPOINT with what is wrong. */
  readSafetensors(file: string): {
    tensors: { name: string; dtype: string; shape: number[]; values: Float64Array }[]
    metadata: Record<string, string>
  }
  /** Writes f32 tensors in the given order. */
  writeSafetensors(
    file: string,
    tensors: { name: string; shape: number[]; values: Float32Array }[],
    metadata?: Record<string, string>,
  ): void
  policyLoss(request: PolicyLossRequest): { loss: number; gradient: Float64Array[]; kl: number; clipFraction: number }
  /** Probabilities after penalty, temperature and cuts (0 = cut), by the rules every backend samples with. */
  sampleDistribution(logits: Float32Array, params: SamplingParams, previousIds: Int32Array): Float64Array
  /** lr of step `step` (from 0). */
  learningRate(schedule: 'constant' | 'linear' | 'cosine', lr: number, step: number, warmup: number, total: number): number
  /** Rotary tables of the model in `dir` as every batch uses them: inverse frequencies [D/2], cos and sin [positions, D/2]; for checks. */
  ropeRows(dir: string, positions: Int32Array): { inverse: Float64Array; cos: Float32Array; sin: Float32Array }
  /** POLLERR or POLLHUP on a descriptor: the reader of our output is gone. */
  readerGone(fd: number): boolean
  /** AdamW and clipping on given arrays, as a step applies them; p, m and v are updated in place, step is 1 for the first update; for checks. */
  adamwStep(request: {
    p: Float32Array
    g: Float32Array
    m: Float32Array
    v: Float32Array
    step: number
    lr: number
    clip: number
    optimizer: OptimizerOptions
  }): { norm: number }
  cpu(): { model: string; features: string[] }
}
