import { abortable } from './abortable.js'
import type { CancelClass, NativeModel, NativeSampler, NativeTrainer } from './native.js'
import type { Model, Sampler, Trained, Trainer } from './types.js'

/** The addon's model behind the typed boundary: AbortSignals become cancel flags, everything else passes as it is. */
export function wrapModel(model: NativeModel, Cancel: CancelClass): Model {
  return {
    get info() {
      return model.info
    },
    newAdapter: async (config, seed) => model.newAdapter(config, seed),
    loadAdapter: async dir => model.loadAdapter(dir),
    weights: async options => model.weights(options),
    sampler: options => wrapSampler(model.sampler(options), Cancel),
    trainer: (trained, optimizer) => wrapTrainer(model.trainer(trained, optimizer), Cancel),
    score: async request => model.score(request),
    lastLogits: async request => model.lastLogits(request),
    dispose: () => model.dispose(),
  }
}

function wrapSampler(sampler: NativeSampler, Cancel: CancelClass): Sampler {
  return {
    generate: (request, signal) => abortable(signal, Cancel, cancel => sampler.generate(request, cancel)),
    release: session => sampler.release(session),
    stats: () => sampler.stats(),
    close: async () => sampler.close(),
  }
}

function wrapTrainer<T extends Trained>(trainer: NativeTrainer<T>, Cancel: CancelClass): Trainer<T> {
  return {
    get trained() {
      return trainer.trained
    },
    get step() {
      return trainer.step
    },
    train: (request, signal) => abortable(signal, Cancel, cancel => trainer.train(request, cancel)),
    evaluate: (request, signal) => abortable(signal, Cancel, cancel => trainer.evaluate(request, cancel)),
    gradient: async request => trainer.gradient(request),
    snapshot: async () => trainer.snapshot(),
    saveState: async file => trainer.saveState(file),
    loadState: async file => trainer.loadState(file),
    dispose: () => trainer.dispose(),
  }
}
