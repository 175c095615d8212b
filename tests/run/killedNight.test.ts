// A night that kill -9 ended before its verdict and that resume completed: named, and passed over until somebody judges it.
import { expect, test } from 'vitest';
import { cli, startCli } from '../support/cli.ts';
import { startFakeModelServer } from '../support/fakeModelServer.ts';
import { localRun, THREE_REPLIES } from './localRun.ts';

test('it has an open verdict from its first moment, and resume says how it is judged', async () => {
  const server = await startFakeModelServer({ replies: [{ content: 'x', hang: true }], by: 'history' });
  const { out, args, query } = localRun({ model: { model_name: 'm', base_url: server.url } });
  const night = startCli([...args, '--baseline', 'last', '--no-evaluate']);
  await server.waitForRequests(1);
  night.process.kill('SIGKILL');
  await night.done;
  expect(query('SELECT baseline, verdict, exit_code FROM verdicts')).toEqual([
    { baseline: null, verdict: null, exit_code: null },
  ]);
  server.setScript('default', THREE_REPLIES);
  const resumed = await cli(['resume', 'r', '-o', out]);
  expect(resumed.code, resumed.stderr).toBe(0);
  expect(resumed.stderr).toMatch(
    /this night stopped before its verdict, and is no baseline without one: "swebatch compare BASELINE r --gate -o \S+" judges it/,
  );
  await server.close();
});

test('a run without a baseline waits for no verdict', async () => {
  const server = await startFakeModelServer({ replies: [{ content: 'x', hang: true }], by: 'history' });
  const { out, args, query } = localRun({ model: { model_name: 'm', base_url: server.url } });
  const run = startCli(args);
  await server.waitForRequests(1);
  run.process.kill('SIGKILL');
  await run.done;
  server.setScript('default', THREE_REPLIES);
  const resumed = await cli(['resume', 'r', '-o', out]);
  expect(resumed.stderr).not.toContain('verdict');
  expect(query('SELECT 1 FROM verdicts')).toEqual([]);
  await server.close();
});
