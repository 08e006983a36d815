import { rmSync } from 'node:fs'
import { isBusy, isDamage } from './failure.js'
import { patiently, type Waiting } from './patience.js'
import { connect } from './sqlite.js'

/**
 * Runs `work` alone among all processes that open or set aside a cache file.
 *
 * The lock is SQLite's own on an empty file beside it, `FILE-lock`, which stays: the system frees it whatever ends its holder. Throws FatalError E_CACHE when
 * it is not to be had.
 */
export function withFileLock<T>(file: string, waiting: Waiting, work: () => T): T {
  const lock = patiently(file, waiting, busyMs => {
    const db = connect(`${file}-lock`, busyMs)
    try {
      db.exec('BEGIN EXCLUSIVE')
      return db
    } catch (error) {
      db.close()
      if (isBusy(error) || !isDamage(error)) throw error
      rmSync(`${file}-lock`, { force: true }) // nobody can hold it
      throw error
    }
  })
  try {
    return work()
  } finally {
    lock.close()
  }
}
