/** `swebatch config show`: the configuration that a run with these words would have, and where each value comes from. */
import { basename, dirname, isAbsolute, relative } from 'node:path';
import { inert } from '../../base/text/inert.ts';
import { PACKAGE_CONFIGS } from '../../config/readConfig.ts';
import { type ConfigRow, configRows, resolveConfig } from '../../run/plan/resolveConfig.ts';
import { runFlags } from '../flags/runFlags.ts';
import { defineVerb, flags, json, toggle } from '../flags/verb.ts';
import { EXIT, forTerminal, printData, printJson, sayNotice } from '../terminal/context.ts';
import { table } from '../terminal/table.ts';

export const configShowVerb = defineVerb({
  name: 'config show',
  describe: 'the resolved configuration: every value, and the file, flag or default that set it',
  flags: flags({
    config: runFlags.config,
    model: runFlags.model,
    all: toggle('defaults too'),
    json,
  }),
  examples: [
    [
      '$0 config show -c swebench -c agent.step_limit=100 -m gpt-5.4',
      'what these files and values mean together',
    ],
    ['$0 config show --all', 'with everything that is a default'],
  ],
  async run(args) {
    const asked = { config: args.config, models: args.model };
    const resolved = resolveConfig(asked, { cwd: process.cwd(), env: process.env });
    for (const text of resolved.warnings) sayNotice({ level: 'warning', text });
    const rows = configRows(resolved).filter(({ from }) => args.all || from !== 'default');
    if (args.json) printJson(JSON.parse(forTerminal(JSON.stringify(rows))));
    else printData(forTerminal(table(['key', 'value', 'from'], rows.map(cells))));
    return EXIT.done;
  },
});

const LONGEST = 60;

function cells({ path, value, from }: ConfigRow): string[] {
  const text = typeof value === 'string' ? value.replaceAll('\n', '\\n') : JSON.stringify(value);
  return [path, beginning(text), near(from)].map(inert);
}

/** The first words of a long text; `--json` has all of it. */
function beginning(text: string): string {
  if (text.length <= LONGEST) return text;
  const most = text.slice(0, LONGEST - 2);
  return `${most.slice(0, most.includes(' ') ? most.lastIndexOf(' ') : undefined)} …`;
}

/** A file as a person would name it. */
function near(from: string): string {
  if (!isAbsolute(from)) return from;
  if (dirname(from) === PACKAGE_CONFIGS) return `built-in ${basename(from, '.yaml')}`;
  const path = relative('', from);
  return path.startsWith('..') ? from : path;
}
