// A run as run.ts opens it, over a record in memory: nothing runs in it but what a test gives.
import { createRedactor } from '../../src/base/text/redact.ts';
import { runConfigSchema } from '../../src/config/configSchema.ts';
import { gradingConfigSchema } from '../../src/grading/gradingConfig.ts';
import type { Run } from '../../src/run/contract.ts';
import { createBudget } from '../../src/run/control/budget.ts';
import { createStopLadder } from '../../src/run/control/stop.ts';
import { createEvents } from '../../src/run/events.ts';
import { freshStore, planted } from '../store/storeFixtures.ts';

export function openedRun({ store = freshStore(), ...more }: Partial<Run> = {}): Run {
  return {
    store,
    row: more.row ?? planted(store, { ids: ['a__a-1'] }),
    config: runConfigSchema.parse({}),
    grading: gradingConfigSchema.parse({}),
    dir: '/nowhere',
    leaseOwner: 'me',
    redactor: createRedactor([]),
    events: createEvents(),
    log: () => {},
    stop: createStopLadder({ onInterrupt: 'finish', graceS: 1, exitNow: () => {} }),
    budget: createBudget(null, 0),
    suite: { variables: {}, asks: false, forTests: () => undefined },
    retry: { attempts: 1, reasons: {}, made: new Map(), outages: new Map() },
    now: () => 0,
    arms: new Map(),
    instances: new Map(),
    trials: [],
    ...{ engine: undefined, images: undefined, disk: undefined, grader: null },
    stepGrading: {
      request: () => Promise.reject(new Error('nothing is graded here')),
      judged: () => {},
      drain: async () => {},
      close: async () => {},
    },
    exporter: { written: new Map(), attemptEnded: () => {}, flush: async () => {} },
    suspicionRules: [],
    answered: () => {},
    ...more,
  };
}
