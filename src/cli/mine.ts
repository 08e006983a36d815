import { command } from './command.js'
import gold from './mine-gold.js'

export default command({
  name: 'cg-mine',
  about: 'mine what agents read from their trajectories (not built yet); gold targets from patches with the subcommand gold',
  notes: ['This version of cg mines no trajectories: beside --help and --version only cg-mine gold works.'],
  unavailable: 'mining trajectories is not built yet: this version of cg has cg-mine gold only',
  reads: ['trajectory'],
  writes: ['reads'],
  options: {},
  examples: [['targets from the patches of SWE-bench rows', 'cg-mine gold instances.jsonl > targets.ndjson']],
  subcommands: { gold },
  run: input => input,
})
