/** Exit status of every command: the only place where the numbers stand. */
export const exits = {
  ok: 0,
  fatal: 1,
  usage: 2,
  faults: 3,
  nothing: 4,
} as const

/** A death by signal n shows as 128 + n: the signal is raised again. */
export const exitMeanings: [status: string, meaning: string][] = [
  [String(exits.ok), 'all done, or the reader of the output went away'],
  [String(exits.fatal), 'stopped: bad input, or a failure of the system'],
  [String(exits.usage), 'wrong usage or configuration'],
  [String(exits.faults), 'finished with -k, but at least one record failed'],
  [String(exits.nothing), 'there were records, and none was done'],
  ['128+n', 'ended by signal n'],
]
