// Gateway and relay together, with a real engine: a program in a container without network, its answer, and the death of the relay.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildPrograms } from '../../../scripts/buildPrograms.ts';
import type { Doorway, Environment } from '../../../src/environment/environment.ts';
import { LABELS } from '../../../src/environment/owner.ts';
import { docker, dockerAvailable } from '../../support/docker.ts';
import { testDocker } from '../../support/dockerEnvironment.ts';
import { sampleOf } from './bodies.ts';
import { type FakeProvider, fakeProvider, json } from './fakeProvider.ts';
import { type Bench, bench, REAL_KEY } from './gatewayBench.ts';

const here = testDocker({ network: 'none' });
const available = await dockerAvailable();
const sample = sampleOf('chat');

describe.skipIf(!available)('a program in a container without network', () => {
  let provider: FakeProvider;
  let gateway: Bench;
  let environment: Environment;
  let door: Doorway;

  beforeAll(async () => {
    buildPrograms();
    provider = await fakeProvider();
    gateway = await bench({ providerUrl: provider.url, dialect: 'chat' });
    environment = await here.start();
    door = await environment.listen(13131, gateway.session.handle);
  });
  afterAll(async () => {
    await gateway.stop();
    await here.stop();
    await provider.close();
  });

  const ask = (body: unknown) =>
    environment.execute(
      `node -e '${`const answer = await fetch("http://127.0.0.1:13131/v1/chat/completions", {
        method: "POST",
        headers: { authorization: "Bearer " + process.env.OPENAI_API_KEY },
        body: process.env.BODY,
      });
      console.log(answer.status, await answer.text());`}' --input-type=module`,
      { env: { OPENAI_API_KEY: gateway.session.key, BODY: JSON.stringify(body) }, timeoutS: 60 },
    );

  test('gets the bytes of the provider, and the real key is nowhere inside', async () => {
    provider.script(json(sample.answer));
    expect((await ask(sample.request)).output.trim()).toBe(`200 ${JSON.stringify(sample.answer)}`);
    // The pattern is written in two parts, so that the search does not find itself.
    const [head, tail] = [REAL_KEY.slice(0, 8), REAL_KEY.slice(8)];
    const { output } = await environment.execute(
      `p="${head}[${tail[0]}]${tail.slice(1)}"; grep -rls -- "$p" /testbed /tmp /root /etc /home /run; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -i -e "$p" -e "_pro[x]y="; true`,
    );
    expect(output.trim()).toBe('');
  });

  test('a relay that is killed ends the attempt as infrastructure, and what the provider still says is paid', async () => {
    const gate = Promise.withResolvers<void>();
    provider.script(async (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(sample.events[0]);
      await gate.promise;
      for (const event of sample.events.slice(1)) response.write(event);
      response.end();
    });
    const rows = gateway.rows.length;
    const running = ask(sample.streamRequest);
    await expect.poll(() => provider.got.length).toBe(2);
    const { containerId } = environment.info;
    // Those of this process: what other tests run may be gone before it is inspected.
    const all = await docker.listContainers({ filters: { label: [`${LABELS.pid}=${process.pid}`] } });
    const inspected = await Promise.all(all.map(({ Id }) => docker.getContainer(Id).inspect()));
    const relay = inspected.find(({ HostConfig }) => HostConfig.NetworkMode === `container:${containerId}`);
    await docker.getContainer(relay!.Id).kill();
    expect(await door.broken).toMatchObject({ code: 'died', sub: 'relay' });
    gate.resolve();
    expect((await running).exitCode).not.toBe(0);
    await expect.poll(() => gateway.rows.slice(rows)).toMatchObject([{ state: 'ok', usage: { output: 7 } }]);
  });
});
