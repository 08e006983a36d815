import type { Figure } from './figure.js'

/** Tells people how far it is, on standard error. */
export type Say = (message: string) => void

/** A benchmark: yields its figures as it has them. */
export type Bench = (say: Say) => AsyncGenerator<Figure>

/** Everything that benches install, download, sample or make; ignored by git, and safe to remove. */
export const benchDirectory = '.bench'
