// The demo's model server: the same commands to whichever agent asks, over real HTTP.
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { demoModelServer } from '../../scripts/demo/modelServer.ts';
import { commandsOf, demoTurn } from '../../scripts/demo/scriptedTurns.ts';

describe('turns of the demo', () => {
  test('a reply with no block or with several is none for an agent that calls tools', () => {
    const block = (command: string) => `\`\`\`bash\n${command}\n\`\`\``;
    const contents = [
      block('ls -a'),
      'no command',
      `${block('one')}\n${block('two')}`,
      `First.\n\n${block('a\nb')}`,
    ];
    expect(commandsOf(contents.map((content) => ({ content })))).toEqual(['ls -a', 'a\nb']);
  });

  test('a command goes to the shell tool that is offered, as it wants to be called', () => {
    const cmd = { name: 'exec_command', parameters: { properties: { cmd: {} } } };
    const bash = { name: 'Bash', parameters: { properties: { command: {}, description: {} } } };
    expect(demoTurn(['ls'], 0, [{ name: 'read' }, cmd])).toEqual({
      name: 'exec_command',
      args: { cmd: 'ls' },
    });
    expect(demoTurn(['ls'], 0, [bash])).toEqual({
      name: 'Bash',
      args: { command: 'ls', description: 'a step' },
    });
    expect(demoTurn(['ls'], 1, [bash])).toHaveProperty('say');
    expect(demoTurn(['ls'], 0, [])).toHaveProperty('say');
  });
});

describe('the model server', () => {
  const server = demoModelServer();
  let url: string;
  beforeAll(async () => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/chat/completions`;
  });
  afterAll(() => void server.close());

  const ask = async (content: string, more: object = {}) => {
    const tools = [
      { type: 'function', function: { name: 'bash', parameters: { properties: { command: {} } } } },
    ];
    const messages = [{ role: 'user', content }];
    const answer = await fetch(url, { method: 'POST', body: JSON.stringify({ messages, tools, ...more }) });
    return answer.text();
  };

  test('knows an instance by its report, and says what was used', async () => {
    const said = await ask('Solve this:\nStepped ranges forget their last value\n\nand so on');
    const { choices, usage } = JSON.parse(said) as {
      choices: { message: { tool_calls: { function: { name: string; arguments: string } }[] } }[];
      usage: { prompt_tokens: number };
    };
    const [call] = choices[0]!.message.tool_calls;
    expect(call!.function.name).toBe('bash');
    expect((JSON.parse(call!.function.arguments) as { command: string }).command).not.toBe('');
    expect(usage.prompt_tokens).toBeGreaterThan(40);
  });

  test('streams where it is asked to, and has nothing to do for a report that it does not know', async () => {
    const said = await ask('something else', { stream: true });
    expect(said).toContain('The report is resolved.');
    expect(said).toContain('"finish_reason":"stop"');
    expect(said).toMatch(/data: \[DONE\]\n\n$/);
  });
});
