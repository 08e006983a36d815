import t from 'tap'
import { stoppedNeighbour } from '../pipeline/stopped.js'

t.setTimeout(280_000)

t.test('a neighbour that stands still for more than a minute', t => stoppedNeighbour(t, 65))
