/** The part of JSON Schema that tools describe their arguments with; chat templates show it to the model as it is. */
export type Parameters = {
  type: 'object'
  properties: Record<string, { type: 'string' | 'integer' | 'boolean'; description: string; minimum?: number; maximum?: number }>
  required: string[]
}

/** Why the arguments do not fit the schema, in words for the model; undefined if they do. The first mistake in the schema's order is named. */
export function argumentProblem(parameters: Parameters, args: Record<string, unknown>): string | undefined {
  const names = Object.keys(parameters.properties)
  for (const [name, { type, minimum, maximum }] of Object.entries(parameters.properties)) {
    const value = args[name]
    if (value === undefined) {
      if (parameters.required.includes(name)) return `${name} is missing`
      continue
    }
    if (type === 'integer') {
      if (!Number.isSafeInteger(value)) return `${name} must be a whole number`
      if (minimum !== undefined && (value as number) < minimum) return `${name} must be at least ${minimum}`
      if (maximum !== undefined && (value as number) > maximum) return `${name} must be at most ${maximum}`
    } else if (typeof value !== type) return type === 'boolean' ? `${name} must be true or false` : `${name} must be a string`
  }
  const unknown = Object.keys(args).find(name => !names.includes(name))
  return unknown === undefined ? undefined : `${JSON.stringify(unknown.slice(0, 40))} is not an argument: there are ${names.join(', ')}`
}
