/** `swebatch show`: one run; of one of its instances, the trajectory as a readable conversation. */

import { dirname } from 'node:path';
import { inert } from '../../base/text/inert.ts';
import { plural } from '../../base/text/numbers.ts';
import { formatCost } from '../../money.ts';
import { agentOf, armWithAgent } from '../../report/measure/runFacts.ts';
import { armScores, scoreText } from '../../report/measure/score.ts';
import { toJson } from '../../report/render/document.ts';
import { namedTrials } from '../../run/namedTrials.ts';
import { openForReading, resultsRoot } from '../../run/resultsRoot.ts';
import { countsOf, statusOf } from '../../run/standing.ts';
import type { Store } from '../../store/open.ts';
import { scoreRows } from '../../store/records/runData.ts';
import {
  armsOf,
  partOfWhole,
  type RunRow,
  shardOf,
  spentNano,
  storedArm,
  storedConfig,
  storedManifest,
} from '../../store/records/runs.ts';
import { classCounts, oomKillsOf } from '../../store/records/trials.ts';
import { defineVerb, flags, json, namedRun, output, string, toggle } from '../flags/verb.ts';
import { commandOn, EXIT, printData, printJson } from '../terminal/context.ts';
import { countsText, spentText } from '../terminal/table.ts';

const showFlags = flags({
  run: {
    ...namedRun,
    describe: 'name, unique prefix, or "last"; RUN/ARM@EPOCH chooses among trials of an instance',
  },
  instance: { ...string('instance id, or a unique part of it'), place: 'optional' },
  output,
  json,
  manifest: toggle('print the manifest (run.json)'),
  patch: toggle('print only the patch'),
  attempt: { type: 'number', describe: 'number of the attempt; default: the final one' },
  full: toggle('do not shorten long outputs'),
});

export const showVerb = defineVerb({
  name: 'show',
  describe: 'show a run, or the trajectory of one of its instances',
  flags: showFlags,
  examples: [
    ['$0 show last', 'what a run is made of'],
    ['$0 show last tabular-3 | less -R', 'read a trajectory'],
    ['$0 show night/second@2 tabular-3', 'that of one arm in the second epoch'],
  ],
  async run(args) {
    using store = openForReading(resultsRoot(args.output));
    const named = namedTrials(store, args.run);
    const { run } = named;
    if (args.manifest) {
      // The exports take longer to load than a run to show.
      const { observedOf } = await import('../../run/record/exportRun.ts');
      printJson({ ...storedManifest(run), observed: await observedOf(store, run.id) });
    } else if (!args.instance) showRun(store, run, args.json);
    else {
      // The viewer's documents of an attempt take twice as long to load as all of this.
      const { showInstance } = await import('../terminal/shownInstance.ts');
      showInstance(store, named, { ...args, instance: args.instance });
    }
    return EXIT.done;
  },
});

function showRun(store: Store, run: RunRow, json: boolean): void {
  const root = dirname(store.name);
  const status = statusOf(root, run);
  const counts = countsOf(root, run, classCounts(store, run.id));
  const money = spentNano(store, run.id);
  const scores = armScores(scoreRows(store, run.id));
  const arms = armsOf(store, run.id);
  const shard = shardOf(run);
  const memory = oomKillsOf(store, run.id);
  if (json) {
    printJson({
      ...run,
      status,
      config: storedConfig(run),
      manifest: storedManifest(run),
      counts,
      cost_nano: money.nano,
      scores: toJson(scores),
    });
    return;
  }
  printData(
    [
      `run       ${run.name} (${status}${status === run.status ? '' : ': its process is gone'})`,
      ...(shard ? [`shard     ${partOfWhole(shard)}`] : []),
      `created   ${run.created_at}${run.finished_at ? `, finished ${run.finished_at}` : ''}`,
      `dataset   ${inert(run.dataset_source)}${run.dataset_revision ? ` @ ${run.dataset_revision}` : ''}`,
      `arms      ${arms.map((a) => inert(armWithAgent({ arm: a.name, model: a.model, agent: agentOf(storedArm(a)) }))).join(', ')}`,
      ...scores.map((score, i) => {
        const name = scores.length > 1 ? `${inert(score.arm)} ` : '';
        return `${i === 0 ? 'resolved  ' : '          '}${name}${score.graded ? scoreText(score) : 'not graded'}`;
      }),
      `trials    ${countsText(counts)}`,
      ...(memory.kills === 0
        ? []
        : [
            `memory    ${plural(memory.kills, 'process', 'processes')} killed by the limit (environment.memory) in ${plural(memory.trials, 'trial')}`,
          ]),
      `cost      ${spentText(money)}`,
      `budget    ${run.budget_nano === null ? 'none' : formatCost(run.budget_nano)}`,
      '',
      ...(status === run.status
        ? []
        : [`next      ${commandOn(root, `resume ${run.name}`)} goes on with it`]),
      `see also  ${commandOn(root, `ls ${run.name}`)}, ${commandOn(root, `report ${run.name}`)}`,
    ].join('\n'),
  );
}
