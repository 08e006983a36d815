import type {
  Engine,
  GenerateRequest,
  Generation,
  Model,
  ModelOptions,
  OptimizerOptions,
  Sampler,
  StepRequest,
  StepStats,
  Trained,
  Trainer,
} from './types.js'

/** What the addon itself exports: the boundary of types.ts with a Cancel in place of every AbortSignal. */
export type NativeEngine = Omit<Engine, 'loadModel' | 'randomModel'> & {
  Cancel: CancelClass
  loadModel(dir: string, options: ModelOptions): Promise<NativeModel>
  randomModel(config: string, options: ModelOptions & { seed: bigint }): Promise<NativeModel>
}

export type Cancel = { cancel(): void }
export type CancelClass = new () => Cancel

export type NativeModel = Omit<Model, 'sampler' | 'trainer'> & {
  sampler(options: { maxBatch: number }): NativeSampler
  trainer<T extends Trained>(trained: T, optimizer: OptimizerOptions): NativeTrainer<T>
}

export type NativeSampler = Omit<Sampler, 'generate'> & {
  generate(request: GenerateRequest, cancel?: Cancel): Promise<Generation>
}

export type NativeTrainer<T extends Trained> = Omit<Trainer<T>, 'train' | 'evaluate'> & {
  train(request: StepRequest, cancel?: Cancel): Promise<StepStats>
  evaluate(request: Omit<StepRequest, 'lr' | 'clip'>, cancel?: Cancel): Promise<StepStats>
}
