/**
 * A rollout as the model saw it: the prompt and everything after it, as tokens. It only grows; nothing is ever rendered or encoded again.
 *
 * `spans` are [start, end, turn] of the generated pieces, in order; `logprobs` has one entry per generated token.
 */
export type Transcript = { ids: number[]; spans: [start: number, end: number, turn: number][]; logprobs: number[] }

export function openTranscript(prompt: readonly number[]): Transcript {
  return { ids: [...prompt], spans: [], logprobs: [] }
}

/** Appends what the model wrote in `turn`, its end-of-turn token included. `logprobs`: one per id. */
export function appendGenerated(transcript: Transcript, turn: number, ids: ArrayLike<number>, logprobs: ArrayLike<number>): void {
  if (ids.length !== logprobs.length) throw new RangeError(`${ids.length} generated ids with ${logprobs.length} log-probs`)
  const start = transcript.ids.length
  for (let i = 0; i < ids.length; i++) {
    transcript.ids.push(ids[i]!)
    transcript.logprobs.push(logprobs[i]!)
  }
  if (ids.length > 0) transcript.spans.push([start, transcript.ids.length, turn])
}

/** Appends what the model did not write: observations and the next header. */
export function appendObserved(transcript: Transcript, ids: ArrayLike<number>): void {
  for (let i = 0; i < ids.length; i++) transcript.ids.push(ids[i]!)
}
