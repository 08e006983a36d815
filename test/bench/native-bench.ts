import { execa } from 'execa'

/** A line of native-bench: one op at one shape. */
export type OpSpeed = {
  what: string
  gflops: number
  /** Of what the core's multiply-adds can do at most, 0 to 1; undefined where it is not printed. */
  share: number | undefined
}

/** Runs native-bench and reads its lines `WHAT … N GFLOP/s … N us … N %`. */
export async function* nativeBench(...args: string[]): AsyncGenerator<OpSpeed> {
  const child = execa('build/Release/native-bench', args, { stdin: 'ignore', stderr: 2 })
  for await (const line of child) {
    const found = /^(\S.*?) +([\d.]+) GFLOP\/s\b(.* us\b.*)$/.exec(line)
    if (!found) continue
    const percent = /([\d.]+) ?%/.exec(found[3]!)
    yield { what: found[1]!, gflops: Number(found[2]), share: percent ? Number(percent[1]) / 100 : undefined }
  }
}
