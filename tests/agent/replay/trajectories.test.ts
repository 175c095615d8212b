// The hundred published trajectories replay equal, and a changed byte in a template is seen by the files that use it.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { extract } from 'tar-stream';
import { beforeAll, describe, expect, test } from 'vitest';
import { isEqual, replayTrajectory } from '../../../src/agent/replay/playTrajectory.ts';

const archive = join(
  import.meta.dirname,
  '../../../../shared/data/trajectories/mini-swe-agent-1.15.0-verified-100.tar.gz',
);

interface Trajectory {
  instance_id: string;
  info: {
    config: { agent: Record<string, string> };
    submission: string;
    exit_status: string;
    model_stats: { instance_cost: number };
  };
  messages: { role: string; content: string }[];
}

async function unpack(path: string): Promise<string[]> {
  const texts: string[] = [];
  const tar = extract();
  tar.end(gunzipSync(readFileSync(path)));
  for await (const entry of tar) {
    const chunks: Uint8Array[] = [];
    for await (const chunk of entry) chunks.push(chunk as Uint8Array);
    if (entry.header.name.endsWith('.traj.json')) texts.push(Buffer.concat(chunks).toString('utf8'));
  }
  return texts;
}

describe.skipIf(!existsSync(archive))('published trajectories (skipped without ../shared)', () => {
  let all: Trajectory[] = [];
  beforeAll(async () => {
    all = (await unpack(archive)).map((text) => JSON.parse(text) as Trajectory);
  });

  test('all hundred replay equal: every message, exit status, submission, cost [M-55]', async () => {
    expect(all).toHaveLength(100);
    let messages = 0;
    let elided = 0;
    for (const given of all) {
      const replayed = await replayTrajectory(given);
      expect(replayed.differences).toEqual([]);
      expect(replayed).toMatchObject({
        instance_id: given.instance_id,
        messages: { equal: given.messages.length, total: given.messages.length },
        exit_status_equal: true,
        submission_equal: true,
        cost_equal: true,
      });
      messages += replayed.messages.total;
      elided += replayed.elided.length;
    }
    expect(messages).toBe(8614);
    expect(elided).toBe(114);
  });

  /** Whether a trajectory shows a part of a template, by the text that this part leaves in a message. */
  const uses =
    (mark: string) =>
    ({ messages }: Trajectory): boolean =>
      messages.slice(0, -1).some((m, i) => m.role === 'user' && i !== 1 && m.content.includes(mark));
  const timesOut = uses('timed out and has been killed');
  const everyFile = () => true;
  const changes: [string, string, string, (given: Trajectory) => boolean][] = [
    ['system_template', 'rejected', 'Rejected', everyFile],
    ['instance_template', '<pr_description>', '<pr_descriptiom>', everyFile],
    ['instance_template', 'after submitting', 'after submittinG', everyFile],
    ['action_observation_template', '<returncode>', '<returncodes', everyFile],
    ['action_observation_template', '</output>', '</Output>', uses('</output>')],
    ['action_observation_template', 'too long', 'too Long', uses('<elided_chars>')],
    ['action_observation_template', '</output_tail>', '</output_tai1>', uses('<elided_chars>')],
    ['format_error_template', 'EXACTLY', 'EXACTLy', uses('Please always provide EXACTLY ONE action')],
    ['timeout_template', 'timed out', 'timed 0ut', timesOut],
    ['timeout_template', 'interactive input', 'interactive inpuT', timesOut],
  ];
  test('no template of a recording is left out', () => {
    const keys = Object.keys(all[0]!.info.config.agent).filter((key) => key.endsWith('_template'));
    expect([...new Set(changes.map(([key]) => key))].sort()).toEqual(keys.sort());
    for (const { info } of all)
      expect(Object.keys(info.config.agent).filter((key) => key.endsWith('_template'))).toHaveLength(
        keys.length,
      );
  });
  /** The trajectory with the changes in its templates. */
  const withChanges = (given: Trajectory, made: typeof changes): Trajectory => {
    const agent = { ...given.info.config.agent };
    for (const [key, from, to] of made) {
      expect(agent[key]).toContain(from);
      agent[key] = agent[key]!.replace(from, to);
    }
    return { ...given, info: { ...given.info, config: { ...given.info.config, agent } } };
  };
  test.each(changes)('one byte of %s ("%s") fails files that use it', async (...change) => {
    const users = all.filter(change[3]);
    expect(users.length).toBeGreaterThan(0);
    // Some twenty, from the first to the last: a replay that fails looks long for what could have been meant.
    const every = Math.ceil(users.length / 25);
    for (const given of users.filter((_, n) => n % every === 0))
      expect(isEqual(await replayTrajectory(withChanges(given, [change]))), given.instance_id).toBe(false);
  });
  test('and no other: a file with every change that it does not use is equal', async () => {
    for (const given of all) {
      const unused = changes.filter(([, , , usedBy]) => !usedBy(given));
      const changed = withChanges(given, unused);
      expect(isEqual(await replayTrajectory(changed)), given.instance_id).toBe(true);
    }
  });

  test('a changed byte in the recording is seen: message, submission, exit status, cost', async () => {
    const given = () => structuredClone(all[0] as Trajectory);
    const observation = given();
    observation.messages[3]!.content = observation.messages[3]!.content.replace(
      '<returncode>',
      '<returnCode>',
    );
    expect(await replayTrajectory(observation)).toMatchObject({
      messages: { equal: given().messages.length - 1 },
    });
    const submission = given();
    submission.info.submission += '\n';
    expect((await replayTrajectory(submission)).submission_equal).toBe(false);
    const status = given();
    status.info.exit_status = 'LimitsExceeded';
    expect((await replayTrajectory(status)).exit_status_equal).toBe(false);
    const cost = given();
    cost.info.model_stats.instance_cost += 2e-9;
    expect((await replayTrajectory(cost)).cost_equal).toBe(false);
  });
});
