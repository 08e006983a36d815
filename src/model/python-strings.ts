import { Environment } from '@huggingface/jinja'

/**
 * Gives the template library's strings Python's `strip`, `lstrip` and `rstrip`: with an argument they cut any of its characters, without one Python's white
 * space. The library ignores the argument, so that a template like Qwen3's (`content.lstrip('\n')`) would lose the leading blanks of an answer.
 *
 * The classes of run-time values are not exported; they are found through a value.
 */
export function usePythonStrip(): void {
  if (patched) return
  patched = true
  const text = new Environment().set('text', '')
  const prototype = Object.getPrototypeOf(text) as object
  const original = Object.getOwnPropertyDescriptor(prototype, 'builtins')!.get!
  const TextValue = text.constructor as new (value: string) => unknown
  const FunctionValue = text.builtins.get('strip')!.constructor as new (call: (args: { value: unknown }[]) => unknown) => unknown
  const sides = { strip: [true, true], lstrip: [true, false], rstrip: [false, true] } as const

  Object.defineProperty(prototype, 'builtins', {
    configurable: true,
    get(this: { value: string }) {
      const map = original.call(this) as Map<string, unknown>
      for (const [name, [left, right]] of Object.entries(sides))
        map.set(name, new FunctionValue(args => new TextValue(strip(this.value, args[0]?.value as string | null | undefined, left, right))))
      return map
    },
  })
}

let patched = false

/** str.isspace() of CPython: what `strip()` without an argument cuts. */
const pythonSpace = new Set(
  '\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000',
)

function strip(text: string, characters: string | null | undefined, left: boolean, right: boolean): string {
  const cut = characters == null ? pythonSpace : new Set(characters)
  const points = Array.from(text)
  let begin = 0
  let end = points.length
  while (left && begin < end && cut.has(points[begin]!)) begin++
  while (right && end > begin && cut.has(points[end - 1]!)) end--
  return points.slice(begin, end).join('')
}
