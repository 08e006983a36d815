/** What one case of reference data gave. `error` is the worst deviation in the unit of `bound`, where the kind has one. */
export type GoldenResult =
  | { status: 'passed'; error?: number }
  | { status: 'failed'; error?: number; message: string }
  | { status: 'not built'; message: string }

/** One kind of reference data: where its cases are in a directory, and how the product is compared with one of them. */
export type GoldenKind<C extends { name: string } = { name: string }> = {
  /** `bm25`, `scores/sets`: the folder or file in the directory. */
  name: string
  /** What `error` must not exceed, in words and number; undefined: compared exactly. */
  bound?: { value: number; unit: string }
  /** Cases in `dir` (the folder that holds `bm25/`, or `forward/`); none when the directory does not have the kind. */
  find(dir: string): C[] | Promise<C[]>
  run(c: C): GoldenResult | Promise<GoldenResult>
}
