import { entry, header, paragraph, roff, section, subsection, typed } from './roff.js'
import { version } from './version.js'

/** What a person finds in the log of a night: words of a message, what they mean, and the command that comes next. */
export type Symptom = { said: string; means: string; next: string }

const theSame = 'the same command'

/** Messages are matched by the test against the sources, so that this list and they cannot drift apart. */
export const symptoms: readonly Symptom[] = [
  {
    said: 'the input ended early',
    means:
      'cg-train: a stage before it died. Whole steps are committed; of a step that was cut nothing was trained. With files only, --allow-partial takes what there is.',
    next: theSame,
  },
  { said: 'ended early', means: 'a stage says this of one before it: look at that one’s own last message, further up.', next: theSame },
  {
    said: 'is gone: run the same command again',
    means: 'cg-rollout: the trainer was killed (kill -9, or the kernel for want of memory).',
    next: theSame,
  },
  {
    said: 'nothing was heard of the trainer for',
    means: 'cg-rollout: the trainer’s heartbeat (DIR/trainer.json, every 5 s) has not changed for a minute: it, or its disk, stands still.',
    next: theSame,
  },
  {
    said: 'no trainer has come for',
    means: 'cg-rollout: nobody writes into the --on-policy directory: cg-train did not start, or was given another --publish.',
    next: 'the same command, both directories equal; --wait SEC if it starts late',
  },
  {
    said: 'is being trained by',
    means:
      'the night before still runs: one directory has one trainer. The lock of a dead process is taken over by itself, after a restart of the machine too.',
    next: 'wait, or kill that process; then the same command',
  },
  {
    said: 'something in the pipe buffers',
    means: 'a filter between the stages keeps lines until it has a block of them, while the trainer waits for one.',
    next: 'jq --unbuffered, grep --line-buffered, or stdbuf -oL FILTER',
  },
  {
    said: 'give the same options, or another directory',
    means:
      'an option that decides the result differs from the one that the run was begun with. --steps may be raised where the schedule does not depend on it.',
    next: 'the options of before, or another --publish',
  },
  {
    said: 'was made from other data',
    means: 'the instances are not those of the run: a step that stands would come out differently.',
    next: 'the input of before, or another --publish',
  },
  {
    said: 'no space left on the device',
    means: 'nothing half-written stands under its own name, and what stood before still does.',
    next: 'free some space (cg-worktree prune --older-than 7d --results), then the same command',
  },
  {
    said: 'the cache is damaged',
    means: 'it was renamed to FILE.damaged-TIME, and a new one begun: only what can be done again is lost.',
    next: 'nothing, or the same command; remove the damaged file when you have looked at your disk',
  },
  {
    said: 'another process has held the cache for',
    means: 'a process writes to the cache and does not end, mostly because it was stopped (kill -STOP, a debugger).',
    next: 'fuser FILE shows it; then the same command',
  },
  {
    said: 'if it is damaged, remove it and run cg-worktree again',
    means: 'a bare clone in the store cannot be read: a disk that failed, or somebody changed it.',
    next: 'rm -r of the clone that is named, then the same command, cg-worktree before it',
  },
  {
    said: 'repair it with cg-worktree verify --fix',
    means: 'files of a worktree are not those of its commit, or are gone.',
    next: 'cg-worktree verify --fix, then the same command',
  },
  {
    said: 'was removed while it was needed',
    means: 'cg-rollout: somebody removed a version of the run directory.',
    next: 'the same command; if it says so again, another --publish',
  },
  {
    said: 'so the run cannot go on',
    means: 'the optimiser’s state of the newest version was removed: without it the next steps would be others.',
    next: 'another --publish with --init-adapter DIR/vNNNNNN',
  },
]

/** The page cg-recovery(7): what holds after a crash, and what to type. */
export function recoveryPage(): string {
  return [
    header('cg-recovery', 7, version),
    section('name', 'cg\\-recovery \\- when a run was interrupted\n'),
    section('description', description()),
    section(
      'what was said, and what to type',
      symptoms.map(({ said, means, next }) => entry(`... ${said} ...`, `${capital(means)} Next: ${next}.`)).join(''),
    ),
    section('exit status of the last night', statuses()),
    section('what holds', promises()),
    section('see also', `${roff('cg-train(1), cg-rollout(1), cg-worktree(1), cg-record(5)')}\n`),
  ].join('')
}

function description(): string {
  return [
    paragraph(
      'Type the same command again. Whatever ended a command (a signal, kill -9, a full disk, a power failure, the death of its neighbour in the pipe), the same command line goes on where it stopped, and its output is the one that an uninterrupted run gives, but for what stands under timing. cg-train wants --resume for that; give it always: it begins when the directory is empty.',
    ),
    paragraph('A line for cron, which mails what is said only when something is wrong:'),
    typed('0 1 * * * cd /data/exp && make -s night 2>> night.log || tail -n 20 night.log'),
    paragraph('In Makefiles a pipe fails with its first failing stage only if the shell is told:'),
    typed('SHELL := /bin/bash\n.SHELLFLAGS := -o pipefail -ec'),
  ].join('')
}

function statuses(): string {
  return [
    entry('1', 'the last message says why; most nights it is answered by the same command'),
    entry('2', 'the command line contradicts itself or the run; nothing was done'),
    entry(
      '3',
      'with --keep-going: fault records stand in the output for what failed; the same command tries those again, the rest comes from the cache',
    ),
    entry('4', 'there was input and nothing could be done with it: is it the right file?'),
    entry(
      '137',
      'kill -9, mostly by the kernel for want of memory (dmesg): cg-train --dry-run prints what it needs, --max-rows-per-pass takes less',
    ),
    entry('129, 130, 143', 'HUP, INT, TERM: work in flight was finished and kept'),
  ].join('')
}

function promises(): string {
  const parts: [title: string, texts: string[]][] = [
    [
      'on-policy training',
      [
        'A step commits by one rename: DIR/v000124 is there with adapter, optimiser state, data cursor and step record, or not at all. Step k is sampled from version max(0, k - lag) exactly, however often the pipe was killed, so step records, tensors and the rollouts of the steps that were still to come are the same bits. Steps that stand are not sampled again: their barriers say replayed.',
        'Kept are the last lag + 2 versions, the best one and the newest --keep N; the optimiser state of the newest two.',
        'That holds for runs in which no tool ran into its time limit and no policy failed.',
      ],
    ],
    [
      'ends',
      [
        'Every stage closes its output with an end record. A stage whose neighbour dies notices within a minute and a half, mostly within two seconds, and ends: a reader that is gone is no failure (status 0), an input that ended early is said, and end says ok false.',
        'cg-train drops a step that was cut and ends with status 1: half a step would be another step.',
      ],
    ],
    [
      'files',
      [
        '-o FILE appears when it is complete; after a signal what was done stands in FILE.partial. Clones, worktrees, versions and adapters are made under other names and renamed; what a killed process left under those is removed by the next one.',
        'Clocks may jump: waiting is measured by each process for itself.',
      ],
    ],
    [
      'the cache',
      [
        'Several pipes may use one cache file at once. What was paid for (answers of a server) is committed before it is written out. A damaged file is renamed to FILE.damaged-TIME, said, and begun anew: only work that can be done again is lost. A file of a newer cg is refused.',
      ],
    ],
    ['children', ['git, ripgrep and nested pipes end with the command that started them, also when that is killed (Linux).']],
  ]
  return parts.map(([title, texts]) => subsection(title, texts.map(paragraph).join(''))).join('')
}

function capital(text: string): string {
  return text.startsWith('cg-') ? text : `${text[0]!.toUpperCase()}${text.slice(1)}`
}
