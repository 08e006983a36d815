import { RecordFault } from './fault.js'
import type { Item, Known, Output } from './item.js'
import type { Fault, Rollout } from './schema.js'

/** The rollouts of one prompt, adjacent in the stream. Not complete: a member is missing and none will come. */
export type Group = { kind: 'group'; rollouts: Known<'rollout'>[]; complete: boolean }

type Gathered = Group & { /** Members and what stood between them, in order. */ items: Item[] }
type Warn = (message: string) => void

/**
 * Gathers adjacent rollouts into groups and passes everything else on; lines that stand between two members follow their group (`mapGroups` keeps them in place).
 *
 * A group is complete with `group.size` members, and is given out at once: waiting for the next group to begin would deadlock an on-policy pipe. A barrier,
 * the end of the input or a rollout of another group close it as it is; the last is said through `warn`, because something between the stages dropped rows.
 * Throws RecordFault E_GROUP when a group comes back, has more than `size` members, or its members disagree about the size.
 */
export async function* groups(input: AsyncIterable<Item>, warn: Warn = () => {}): AsyncGenerator<Group | Item> {
  for await (const found of gather(input, warn)) {
    if (found.kind !== 'group') yield found
    else {
      const { items, ...group } = found
      yield group
      for (const item of items) if (item.kind !== 'rollout') yield item
    }
  }
}

/** Replaces each member of a group by the record that `work` gives for it (a fault where it failed), in order; everything else stays in place. */
export async function* mapGroups(
  input: AsyncIterable<Item>,
  warn: Warn,
  work: (group: Group) => (Rollout | Fault)[] | Promise<(Rollout | Fault)[]>,
): AsyncGenerator<Output> {
  for await (const found of gather(input, warn)) {
    if (found.kind !== 'group') {
      yield found
      continue
    }
    const { items, ...group } = found
    const results = await work(group)
    if (results.length !== group.rollouts.length) throw new RangeError(`${results.length} results for ${group.rollouts.length} rollouts`)
    let next = 0
    for (const item of items) yield item.kind === 'rollout' ? results[next++]! : item
  }
}

async function* gather(input: AsyncIterable<Item>, warn: Warn): AsyncGenerator<Gathered | Item> {
  const closed = new Set<string>()
  let open: Known<'rollout'>[] = []
  let items: Item[] = []

  function close(): Gathered {
    const { id, size } = open[0]!.record.group
    closed.add(id)
    const group: Gathered = { kind: 'group', rollouts: open, complete: open.length === size, items }
    open = []
    items = []
    return group
  }

  for await (const item of input) {
    if (item.kind !== 'rollout') {
      if (open.length === 0) yield item
      else if (item.kind === 'barrier') {
        yield close()
        yield item
      } else items.push(item)
      continue
    }
    const { id, size } = item.record.group
    const first = open[0]?.record.group
    if (first && first.id !== id) {
      warn(`group ${first.id} has ${open.length} of ${first.size} rollouts: rows were dropped before this stage`)
      yield close()
    }
    if (closed.has(id))
      throw at(
        item,
        `group ${id} has more than ${size} rollouts or comes back after it was complete: do not feed the same rollouts twice, and do not sort them`,
      )
    if (open[0] && open[0].record.group.size !== size)
      throw at(item, `group ${id} is of ${open[0].record.group.size} rollouts in one row and of ${size} in another`)
    open.push(item)
    items.push(item)
    if (open.length === size) yield close()
  }
  if (open.length > 0) yield close()
}

function at(item: Known<'rollout'>, message: string): RecordFault {
  const fault = new RecordFault('E_GROUP', message)
  fault.origin = item.origin
  return fault
}
