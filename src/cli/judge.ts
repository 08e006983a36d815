import { command } from './command.js'

export default command({
  name: 'cg-judge',
  about: 'judge which reads of a trajectory mattered, and weigh them into targets (not built yet)',
  notes: ['This version of cg has no judge: --help and --version are all that cg-judge does.'],
  unavailable: 'not built yet: this version of cg has no judge',
  reads: ['reads'],
  writes: ['reads'],
  options: {},
  examples: [],
  run: input => input,
})
