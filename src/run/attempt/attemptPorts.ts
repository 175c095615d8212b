/** What every attempt of a sitting gets. */
import type { RunConfig } from '../../config/runConfig.ts';
import { suspicionRules } from '../../grading/suspicion/commandRules.ts';
import type { RunRow } from '../../store/records/runs.ts';
import type { AttemptPorts } from '../attempt.ts';
import { tellOtherModels } from '../control/otherModels.ts';

type Journal = AttemptPorts['journal'];
interface Stored extends Pick<Journal, 'store'> {
  readonly run: Pick<RunRow, 'name'>;
  readonly config: RunConfig;
}
type Ports = Pick<Journal, 'redactor' | 'events' | 'leaseOwner'> & Pick<AttemptPorts, 'stop' | 'log'>;
type Rest = Pick<Journal, 'budget' | 'isoNow'> & Pick<AttemptPorts, 'now' | 'gates'>;

export function attemptPortsOf(
  { store, run, config }: Stored,
  { redactor, events, leaseOwner, stop, log }: Ports,
  { budget, isoNow, now, gates }: Rest,
): AttemptPorts {
  return {
    journal: {
      ...{ store, redactor, events, budget, leaseOwner, isoNow },
      suspicionRules: suspicionRules(config.suspicion_rules),
      onAnswer: tellOtherModels((text) => events.emit({ type: 'note', text })),
    },
    ...{ config, runName: run.name, stop, gates, now, log },
    retry: { ...config.retry, made: new Map(), outages: new Map() },
  };
}
