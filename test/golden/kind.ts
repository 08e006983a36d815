/** The worst deviation of one quantity of a case, and what it must not exceed. */
export type Measure = { what: string; error: number; bound: number }

/** What one case of reference data gave. `error` is the worst deviation in the unit of `bound`, where the kind has one; a kind with several quantities has `measures`. */
export type GoldenResult =
  | { status: 'passed'; error?: number; measures?: Measure[] }
  | { status: 'failed'; error?: number; measures?: Measure[]; message: string }
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
