import { applyRecipe } from '../train/recipes.js'
import type { CommonOptions, Method } from '../train/settings.js'
import type { Context } from './command.js'

/** The options with the recipe's values in their places; what they came to is said. */
export function resolveRecipe<O extends Omit<CommonOptions, 'lr'> & { recipe: string | undefined }>(
  method: Method,
  options: O,
  context: Context,
): O {
  if (options.recipe === undefined) return options
  const resolved = applyRecipe(options.recipe, method, options, context.given)
  for (const line of resolved.lines) context.say(line)
  return resolved.options
}
