/**
 * Tokens of the BM25 baseline (CodeGrep, Appendix E), its steps in the order in which it names them: split at white space, delete every character outside
 * `[a-zA-Z0-9_./]` anywhere in a piece, lower-case, drop what is shorter than 2, drop what now begins with `http`.
 *
 * So `don't` → `dont`; `(http://y)`, `HttpResponse` and `httplib2` are dropped, `xhttp` stays. White space is ECMAScript's `\s`. The same for documents,
 * queries and paths; a path without white space is one token.
 */
export function bm25Tokens(text: string): string[] {
  // Deleting before splitting gives the same pieces, and one pass over the text.
  return text
    .replace(/[^a-zA-Z0-9_./\s]+/g, '')
    .toLowerCase()
    .split(/\s+/)
    .filter(token => token.length >= 2 && !token.startsWith('http'))
}
