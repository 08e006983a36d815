import type { Difference, Table, TableRow } from '../record/schema.js'

type Column = { head: string; cell(row: TableRow): string; left?: boolean }

const fixed = (digits: number) => (value: number | null | undefined) =>
  value === null || value === undefined ? '–' : value.toFixed(digits)
const percent = (value: number | null) => (value === null ? '–' : `${(100 * value).toFixed(1)}%`)

const columns: Column[] = [
  { head: '', cell: row => (row.by ? `  ${row.by.value}` : row.name), left: true },
  { head: 'scored', cell: row => `${row.scored}/${row.n}` },
  { head: 'F0.5', cell: row => fixed(3)(row.f05_mean) },
  { head: 'median', cell: row => fixed(3)(row.f05_median) },
  { head: 'P', cell: row => fixed(3)(row.precision) },
  { head: 'R', cell: row => fixed(3)(row.recall) },
  { head: 'F≥0.8', cell: row => percent(row.share_08) },
  { head: 'turns', cell: row => fixed(2)(row.turns) },
  { head: 'calls/turn', cell: row => fixed(2)(row.calls_per_turn) },
  { head: 'not run', cell: row => percent(row.not_run) },
  { head: 'tokens', cell: row => fixed(0)(row.tokens) },
  { head: 'seconds', cell: row => fixed(2)(row.timing?.seconds) },
]

/** A table as aligned lines for a person: policies below each other, numbers right-aligned, a dash where there is nothing to average. */
export function tableText(table: Table): string[] {
  const cells = [columns.map(column => column.head), ...table.rows.map(row => columns.map(column => column.cell(row)))]
  const widths = columns.map((_, at) => Math.max(...cells.map(line => line[at]!.length)))
  const lines = cells.map(line =>
    line
      .map((cell, at) => (columns[at]!.left ? cell.padEnd(widths[at]!) : cell.padStart(widths[at]!)))
      .join('  ')
      .trimEnd(),
  )
  const field = table.rows.find(row => row.by)?.by?.field
  const title = [table.title, table.gold_rules && `gold ${table.gold_rules}`, field && `by ${field}`].filter(Boolean).join(', ')
  return [title, '', ...lines, ...(table.difference ? ['', differenceText(table.difference)] : [])]
}

function differenceText({ from, to, f05, low, high, level, instances, better, equal, worse }: Difference): string {
  const signed = (value: number) => `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(3)}`
  const counts = `${better} better, ${equal} equal, ${worse} worse of ${instances} instances`
  return `${to} − ${from}: F0.5 ${signed(f05)}, ${100 * level} % interval ${signed(low)} … ${signed(high)} (${counts})`
}
