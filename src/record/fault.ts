import type { Origin } from './item.js'

/**
 * A record that could not be worked on. Without `--keep-going` it ends the command (exit 1); with it the record is replaced by a `fault` record.
 *
 * `message` says what is wrong and what to do; `code` is one of the upper-case words listed in cg-record(5).
 */
export class RecordFault extends Error {
  /** The line it is about; set on the way up by whoever knows it. */
  origin?: Origin
  /** For a line that cannot be read: its text and where in it the trouble is (UTF-16 units from 0), shown with a caret. */
  excerpt?: { text: string; at: number }

  constructor(
    readonly code: string,
    message: string,
    readonly retry = false,
  ) {
    super(message)
    this.name = 'RecordFault'
  }
}

/** A mistake in options or configuration: exit 2. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'UsageError'
  }
}

/** Nothing more can be done: exit 1. Shown without a stack. */
export class FatalError extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message)
    this.name = 'FatalError'
  }
}
