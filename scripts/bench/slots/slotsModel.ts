// A model that takes as long as the simulated trial says, and submits at its end.
import { systemClock } from '../../../src/model/limits/clock.ts';
import type { Model, ModelForAttempt } from '../../../src/model/model.ts';
import { answerFrom } from '../../../src/model/offline/canned.ts';
import { simulatedTrial } from './simulated.ts';

const THOUGHT = 'I look at the file and change what the issue names. '.repeat(12);
const USAGE = { input: 1_000, cacheRead: 4_000, cacheWrite: 0, output: 200, reasoning: 0 };

export const free = true;

export function createModel({ attempt }: { attempt: ModelForAttempt }): Model {
  const { latencies } = simulatedTrial(attempt.instanceId);
  let step = 0;
  return {
    name: 'simulated',
    templateVars: () => ({ model_name: 'simulated', model_kwargs: {} }),
    query(_messages, options = {}) {
      const latency = latencies[step] ?? 0;
      step += 1;
      const last = step >= latencies.length;
      const command = last ? 'echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT' : `sed -n '${step},80p' file.py`;
      const message = { role: 'assistant', content: `${THOUGHT}\n\n\`\`\`bash\n${command}\n\`\`\`` };
      const body = {
        ...{ id: `s-${step}`, object: 'chat.completion', model: 'simulated' },
        choices: [{ index: 0, finish_reason: 'stop', message }],
      };
      return answerFrom({ body, usage: USAGE, costNano: 0 }, 'simulated', latency, options, systemClock);
    },
  };
}
