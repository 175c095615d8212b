/** `swebatch replay`: published trajectories through the agent that `run` uses, compared message by message. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { isEqual, type ReplayResult, replayTrajectory } from '../../agent/replay/playTrajectory.ts';
import { readRecording, UnplayableRecording } from '../../agent/replay/readRecording.ts';
import { setting } from '../../base/plausible.ts';
import { inert } from '../../base/text/inert.ts';
import {
  createEnvironmentFactory,
  DEFAULT_ENVIRONMENT,
  environmentConfigSchema,
} from '../../environment/environments.ts';
import { currentOwner } from '../../environment/owner.ts';
import { gunzipped, parseForeignJson } from '../../formats/foreignFile.ts';
import { readTrajectory } from '../../formats/miniSweAgent/trajectory.ts';
import { firstDifference } from '../../model/offline/replayed.ts';
import { UserError } from '../../run/userError.ts';
import { type Args, defineVerb, flags, json, oneOf, string, toggle } from '../flags/verb.ts';
import { EXIT, printData, printJson, say } from '../terminal/context.ts';

interface FileResult extends ReplayResult {
  readonly file: string;
  /** The reason why an attempt could not be played at all. */
  readonly problem?: string;
}

const replayFlags = flags({
  files: { ...string('*.traj.json files, or folders of them'), place: 'required', list: true },
  check: toggle('exit 1 if anything differs'),
  environment: {
    ...oneOf(
      ['recorded', DEFAULT_ENVIRONMENT],
      'recorded outputs, or the commands run for real in a container',
    ),
    default: 'recorded',
  },
  image: string('image for --environment docker; default: the recorded one'),
  network: string('network for --environment docker; default: the one recorded by swebatch, else none'),
  json,
});

export const replayVerb = defineVerb({
  name: 'replay',
  describe: 'play recorded trajectories through the built-in agent and compare every message',
  flags: replayFlags,
  examples: [
    ['$0 replay results/r1/trajectories --check', 'does the built-in agent behave as the recorded one?'],
    [
      '$0 replay a.traj.json --environment docker',
      'run the recorded commands for real and show what differs',
    ],
  ],
  async run(args) {
    const files = args.files.flatMap(trajectoryFiles);
    if (files.length === 0) throw new UserError('there is no *.traj.json file', { hint: REPLAYABLE });
    const results: FileResult[] = [];
    for (const file of files) {
      const result = await playedOrNot(file, (json) =>
        args.environment === DEFAULT_ENVIRONMENT ? replayInContainer(json, args) : replayTrajectory(json),
      );
      results.push(result);
      if (!args.json) printData(lines(result).join('\n'));
    }
    const unreadable = results.filter((r) => r.problem !== undefined);
    // One unreadable file among many must not hide the results of the others; alone it is a wrong argument.
    if (unreadable.length === files.length) throw new UserError(unreadable.map((r) => r.problem).join('\n'));
    if (args.json)
      printJson(
        results.map(({ differences, elided, standIns, problem, ...played }) => ({
          ...played,
          elided: elided.length,
          ...(standIns.length > 0 ? { stand_ins: standIns.length } : {}),
          ...(problem === undefined ? {} : { problem }),
          differences: differences.slice(0, 5),
        })),
      );
    const equal = results.filter(isEqual).length;
    say(`${equal} of ${results.length} trajectories replay equal`);
    if (args.check && equal < results.length) return EXIT.gate;
    return unreadable.length > 0 ? EXIT.usage : EXIT.done;
  },
});

const REPLAYABLE = 'name *.traj.json files or a folder of them, for example results/RUN/trajectories';

function trajectoryFiles(path: string): string[] {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (!stat) throw new UserError(`there is no file or folder ${path}`, { hint: REPLAYABLE });
  if (!stat.isDirectory()) return [path];
  return readdirSync(path, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.traj\.json(?:\.gz)?$/.test(name))
    .sort()
    .map((name) => join(path, name));
}

/** A file that is not a trajectory, or that this agent cannot play, is reported with its place and without a stack; the others are played. */
async function playedOrNot(
  file: string,
  play: (json: unknown) => Promise<ReplayResult>,
): Promise<FileResult> {
  let bytes: Uint8Array;
  try {
    bytes = gunzipped(file, readFileSync(file));
  } catch (error) {
    return notPlayed(file, `${file} cannot be read: ${(error as Error).message}`);
  }
  const read = readTrajectory(bytes);
  if (!read.ok) return notPlayed(file, `${file} is not a trajectory: ${read.message}`);
  const json = parseForeignJson(bytes).value;
  try {
    return { file, ...(await play(json)) };
  } catch (error) {
    if (error instanceof UnplayableRecording)
      return notPlayed(file, `${file}: ${error.message}`, error.instanceId);
    if (!(error instanceof z.ZodError)) throw error;
    const [issue] = error.issues;
    return notPlayed(file, `${file} is not a trajectory: ${issue?.path.join('.')}: ${issue?.message}`);
  }
}

const notPlayed = (file: string, problem: string, instanceId = 'unknown'): FileResult => ({
  file,
  instance_id: instanceId,
  messages: { equal: 0, total: 0 },
  exit_status_equal: false,
  submission_equal: false,
  cost_equal: false,
  differences: [{ where: 'replay', recorded: problem, replayed: '' }],
  elided: [],
  standIns: [],
  problem,
});

const recordedEnvironmentSchema = z.looseObject({
  info: z.looseObject({
    config: z.looseObject({
      environment: z
        .looseObject({
          image: z.string().optional(),
          cwd: z.string().default('/testbed'),
          timeout: setting.seconds().default(60),
          env: z.record(z.string(), z.string()).default({}),
        })
        .prefault({}),
    }),
  }),
});

async function replayInContainer(json: unknown, args: Args<typeof replayFlags>): Promise<ReplayResult> {
  const recording = readRecording(json);
  const { image: itsImage, ...recorded } = recordedEnvironmentSchema.parse(json).info.config.environment;
  const image = args.image ?? itsImage;
  if (!image)
    throw new UserError(`${recording.instanceId}: the recording names no image; give one with --image`);
  // A trajectory of ours says all of it; the published agent neither sealed nor closed its containers.
  const ours = 'seal_history' in recorded;
  const { cwd, timeout, env } = recorded;
  const settings = ours ? { ...recorded, hosts: undefined } : { cwd, timeout, env, seal_history: false };
  const factory = await createEnvironmentFactory(
    environmentConfigSchema.strip().parse({
      ...settings,
      environment_class: DEFAULT_ENVIRONMENT,
      network: args.network ?? (ours ? recorded.network : 'none'),
    }),
  );
  const environment = await factory.start({
    instanceId: recording.instanceId,
    image,
    owner: currentOwner('replay', recording.instanceId),
  });
  try {
    return await replayTrajectory(json, { environment });
  } finally {
    await environment.close();
    await factory.close();
  }
}

const SHOWN = 3;

function lines(result: FileResult): string[] {
  const { messages, elided, standIns, differences, problem } = result;
  if (problem !== undefined) return [`UNREAD   ${inert(problem)}`];
  const state = isEqual(result) ? 'equal' : 'DIFFERS';
  const rebuilt = elided.length > 0 ? `, ${elided.length} elided output(s) rebuilt to the same length` : '';
  const stoodIn =
    standIns.length > 0
      ? `, ${standIns.length} malformed repl${standIns.length === 1 ? 'y' : 'ies'} that the recording does not hold stood in for`
      : '';
  return [
    `${state.padEnd(8)} ${inert(result.instance_id)} ${messages.equal}/${messages.total} messages${rebuilt}${stoodIn}`,
    ...differences
      .slice(0, SHOWN)
      .map((d) => `         at ${d.where}: ${firstDifference(d.recorded, d.replayed)}`),
    ...(differences.length > SHOWN ? [`         and ${differences.length - SHOWN} more`] : []),
  ];
}
