// What a program may ask for: the pure core, with requests that try to get past it.
import { describe, expect, test } from 'vitest';
import { gatewayConfigSchema } from '../../../src/agent/gateway/gatewayConfig.ts';
import { applyPolicy, type CallRequest, spansOf, spliced } from '../../../src/agent/gateway/policy.ts';
import { attemptKeyOf, passedHeaders, returnedHeaders, routeOf } from '../../../src/agent/gateway/routes.ts';
import type { DialectName } from '../../../src/model/dialects/dialects.ts';
import { SAMPLES, sampleOf } from './bodies.ts';

const policy = (more: Record<string, unknown> = {}) => ({
  config: gatewayConfigSchema.parse(more),
  model: 'm-1',
  name: 'maker/m-1',
});

const ask = (dialect: DialectName, body: unknown, more: Partial<CallRequest> = {}): CallRequest => ({
  dialect,
  operation: 'generate',
  model: dialect === 'gemini' ? 'm-1' : null,
  body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
  ...more,
});

const withTools = (dialect: DialectName, tools: readonly unknown[], more: Record<string, unknown> = {}) =>
  applyPolicy(policy(), ask(dialect, { ...sampleOf(dialect).request, tools, ...more }));

describe('tools that run at the provider', () => {
  const cases: [DialectName, Record<string, unknown>, string][] = [
    ['chat', { type: 'web_search' }, 'web_search'],
    ['responses', { type: 'web_search' }, 'web_search'],
    ['responses', { type: 'web_search_preview_2025_03_11' }, 'web_search_preview_2025_03_11'],
    ['responses', { type: 'code_interpreter', container: { type: 'auto' } }, 'code_interpreter'],
    ['responses', { type: 'mcp', server_url: 'https://example.org' }, 'mcp'],
    ['responses', { type: 'file_search' }, 'file_search'],
    ['responses', { type: 'image_generation' }, 'image_generation'],
    ['responses', { type: 'shell', environment: { type: 'container_auto' } }, 'shell'],
    ['responses', { type: 'namespace', name: 'n', tools: [{ type: 'web_search' }] }, 'namespace'],
    ['messages', { type: 'web_search_20250305', name: 'web_search' }, 'web_search_20250305'],
    ['messages', { type: 'web_fetch_20250910', name: 'web_fetch' }, 'web_fetch_20250910'],
    ['messages', { type: 'code_execution_20250825', name: 'code_execution' }, 'code_execution_20250825'],
    ['messages', { type: 'mcp_toolset', mcp_server_name: 's' }, 'mcp_toolset'],
    ['gemini', { googleSearch: {} }, 'googleSearch'],
    ['gemini', { urlContext: {} }, 'urlContext'],
    ['gemini', { code_execution: {} }, 'code_execution'],
  ];

  test.each(cases)('%s: %o is left out, the program’s own stay', (dialect, tool, name) => {
    const own = sampleOf(dialect).request.tools as unknown[];
    const left = withTools(dialect, [...own, tool]);
    expect(left).toMatchObject({ ok: true, stripped: [name], hasTools: true });
    if (left.ok) expect(JSON.parse(left.body.toString()).tools).toEqual(own);
    const strict = applyPolicy(
      policy({ provider_tools: 'refuse' }),
      ask(dialect, { ...sampleOf(dialect).request, tools: [...own, tool] }),
    );
    expect(strict).toMatchObject({
      ok: false,
      refusal: 'bad_request',
      message: expect.stringContaining(name),
    });
  });

  test('one entry of Gemini may hold both kinds', () => {
    const left = withTools('gemini', [{ functionDeclarations: [], googleSearch: {} }]);
    if (left.ok) expect(JSON.parse(left.body.toString()).tools).toEqual([{ functionDeclarations: [] }]);
    expect(left).toMatchObject({ stripped: ['googleSearch'] });
  });

  test('tools that the program runs pass as they are', () => {
    for (const [dialect, tools] of [
      ['responses', [{ type: 'local_shell' }, { type: 'custom', name: 'apply_patch' }]],
      ['responses', [{ type: 'namespace', name: 'n', tools: [{ type: 'function', name: 'f' }] }]],
      [
        'messages',
        [
          { type: 'bash_20250124', name: 'bash' },
          { type: 'text_editor_20250728', name: 'e' },
        ],
      ],
    ] as const)
      expect(withTools(dialect, tools)).toMatchObject({ ok: true, stripped: [] });
  });

  test('when none is left, the choice of a tool goes too, unless it asked for that one', () => {
    const left = withTools('responses', [{ type: 'web_search' }], {
      tool_choice: 'auto',
      parallel_tool_calls: true,
    });
    if (!left.ok) throw new Error('refused');
    expect(Object.keys(JSON.parse(left.body.toString()))).toEqual(['model', 'input']);
    expect(
      withTools('responses', [{ type: 'web_search' }], { tool_choice: { type: 'web_search' } }),
    ).toMatchObject({
      ok: false,
    });
  });

  test('fields that switch such a tool on are left out', () => {
    const chat = applyPolicy(
      policy(),
      ask('chat', { ...sampleOf('chat').request, web_search_options: {}, plugins: [{ id: 'web' }] }),
    );
    expect(chat).toMatchObject({ ok: true, stripped: ['web_search_options', 'plugins'] });
    if (chat.ok) expect(JSON.parse(chat.body.toString())).toEqual(sampleOf('chat').request);
    const servers = { mcp_servers: [{ type: 'url', url: 'https://example.org' }] };
    expect(
      applyPolicy(policy(), ask('messages', { ...sampleOf('messages').request, ...servers })),
    ).toMatchObject({
      stripped: ['mcp_servers'],
    });
  });
});

describe('fields that nobody here knows', () => {
  test.each<[DialectName, Record<string, unknown>]>([
    ['chat', { models: ['m-9'], route: 'fallback' }],
    ['chat', { fallbacks: ['m-9'], mock_testing_fallbacks: true }],
    ['chat', { Tools: [{ type: 'web_search' }], Model: 'm-9' }],
    ['chat', { provider: { order: ['dearest'] } }],
    ['chat', { service_tier: 'priority' }],
    ['messages', { speed: 'fast', inference_geo: 'us' }],
    ['responses', { Tools: [{ type: 'mcp', connector_id: 'mail' }] }],
    ['gemini', { Tools: [{ googleSearch: {} }] }],
  ])('%s: %o are left out, the rest stays', (dialect, more) => {
    const { request } = sampleOf(dialect);
    const judged = applyPolicy(policy(), ask(dialect, { ...request, ...more }));
    expect(judged).toMatchObject({ ok: true, stripped: [], unknown: Object.keys(more) });
    if (judged.ok) expect(JSON.parse(judged.body.toString())).toEqual(request);
    expect(
      applyPolicy(policy({ provider_tools: 'refuse' }), ask(dialect, { ...request, ...more })),
    ).toMatchObject({
      ok: true,
    });
  });

  test('numbers, and what servers take beside the fields of OpenAI, pass byte for byte', () => {
    const more = { top_k: 5, min_p: 0.1, chat_template_kwargs: { enable_thinking: false }, fresh: 1.5 };
    const asked = ask('chat', { ...sampleOf('chat').request, ...more, service_tier: 'auto' });
    expect(applyPolicy(policy(), asked)).toMatchObject({ ok: true, unknown: [], body: asked.body });
  });

  test('every answer that is asked for is reserved', () => {
    const chat = { ...sampleOf('chat').request, n: 10, max_tokens: 1000 };
    expect(applyPolicy(policy(), ask('chat', chat))).toMatchObject({ maxOutput: 10_000 });
    const generationConfig = { candidateCount: 4, maxOutputTokens: 100 };
    const gemini = { ...sampleOf('gemini').request, generationConfig };
    expect(applyPolicy(policy(), ask('gemini', gemini))).toMatchObject({ maxOutput: 400 });
  });
});

describe('what the provider would fetch, and what lies there', () => {
  const url = 'https://example.org/?secret';
  test.each<[DialectName, Record<string, unknown>]>([
    ['chat', { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }] }],
    ['responses', { input: [{ role: 'user', content: [{ type: 'input_image', image_url: url }] }] }],
    ['responses', { input: [{ role: 'user', content: [{ type: 'input_file', file_url: url }] }] }],
    ['responses', { input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'file-1' }] }] }],
    [
      'messages',
      { messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'url', url } }] }] },
    ],
    [
      'messages',
      {
        messages: [
          {
            role: 'user',
            content: [{ type: 'tool_result', content: [{ type: 'image', source: { type: 'url', url } }] }],
          },
        ],
      },
    ],
    ['gemini', { contents: [{ parts: [{ fileData: { fileUri: url } }] }] }],
    ['responses', { previous_response_id: 'resp_of_another_attempt' }],
    ['gemini', { cachedContent: 'cachedContents/1' }],
    ['chat', { messages: [{ role: 'user', content: [{ type: 'document_url', document_url: url }] }] }],
    ['chat', { messages: [{ role: 'user', content: [{ type: 'file', file: { file_data: url } }] }] }],
    [
      'chat',
      { messages: [{ role: 'user', content: [{ type: 'input_audio', input_audio: { data: url } }] }] },
    ],
    ['chat', { messages: [{ role: 'user', content: [{ video: ['//example.org/1'] }] }] }],
    [
      'chat',
      {
        messages: [{ role: 'user', type: 'tool_use', content: [{ type: 'image_url', image_url: { url } }] }],
      },
    ],
    [
      'gemini',
      { contents: [{ parts: [{ functionResponse: { parts: [{ fileData: { fileUri: 'x' } }] } }] }] },
    ],
    ['gemini', { contents: [{ parts: [{ inlineData: { data: 'gs://bucket/x' } }] }] }],
    ['gemini', { generateContentRequest: { contents: [{ parts: [{ fileData: { fileUri: url } }] }] } }],
    ['responses', { input: [{ type: 'item_reference', id: 'msg_1' }] }],
    ['responses', { input: [{ id: 'msg_1' }] }],
    ['responses', { input: [{ type: 'tool_search_output', tools: [{ type: 'mcp', server_url: url }] }] }],
    ['responses', { input: [{ type: 'tool_search_output', tools: [{ type: 'mcp', connector_id: 'm' }] }] }],
  ])('%s refuses %o', (dialect, more) => {
    const { request } = sampleOf(dialect);
    expect(applyPolicy(policy(), ask(dialect, { ...request, ...more }))).toMatchObject({
      ok: false,
      refusal: 'bad_request',
    });
  });

  test('bytes in the request, and what the program’s own tools are called with, pass', () => {
    const { request } = sampleOf('messages');
    const content = [
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
      { type: 'tool_use', id: 't', name: 'fetch', input: { image_url: url, source: { type: 'url', url } } },
      { type: 'text', text: url },
      { type: 'tool_result', tool_use_id: 't', content: url },
    ];
    expect(
      applyPolicy(policy(), ask('messages', { ...request, messages: [{ role: 'assistant', content }] })),
    ).toMatchObject({
      ok: true,
    });
    const image = [
      { role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AA' } }] },
    ];
    expect(
      applyPolicy(policy(), ask('chat', { ...sampleOf('chat').request, messages: image })),
    ).toMatchObject({
      ok: true,
    });
  });
});

describe('models', () => {
  test('the arm’s name and its id are the same model; a mapped one is another', () => {
    const of = (model: string) =>
      applyPolicy(policy({ models: { small: 'm-0' } }), ask('chat', { ...sampleOf('chat').request, model }));
    expect(of('m-1')).toMatchObject({ ok: true, model: 'm-1' });
    expect(of('maker/m-1')).toMatchObject({ ok: true, model: 'm-1', modelAsked: 'maker/m-1' });
    const small = of('small');
    expect(small.ok && small.body.toString()).toBe(
      JSON.stringify({ ...sampleOf('chat').request, model: 'm-0' }),
    );
    for (const other of ['m-1:online', 'constructor', '__proto__', ''])
      expect(of(other)).toMatchObject({ refusal: 'not_found' });
  });
});

describe('bytes', () => {
  test('a key that stands twice is refused wherever it stands, also when it is written otherwise', () => {
    for (const body of [
      '{"model":"m-1","model":"m-2"}',
      '{"model":"m-1","mod\\u0065l":"m-2"}',
      '{"model":"m-1","tools":[{"type":"function","type":"web_search"}]}',
    ])
      expect(applyPolicy(policy(), ask('chat', body))).toMatchObject({
        ok: false,
        note: expect.stringContaining('twice'),
      });
  });

  test('spans are those of the values, whatever stands in strings', () => {
    const text = ' { "a" : "x\\"}]{[,\\\\" , "b":[{"c":"}"},1.50],"é":{"d":null} ,"e":true,"f":{},"g":[] }';
    const bytes = Buffer.from(text);
    const found = Object.fromEntries(
      [...spansOf(bytes)].map(([key, { start, end }]) => [
        key,
        JSON.parse(bytes.toString('utf8', start, end)),
      ]),
    );
    expect(found).toEqual(JSON.parse(text));
    expect(spliced(bytes, [{ span: spansOf(bytes).get('e')!, text: '"changed"' }]).toString()).toBe(
      text.replace('true', '"changed"'),
    );
  });

  test('more values than any conversation has are refused before they are read', () => {
    const many = (value: string) => `{"model":"m-1","messages":[${Array(400_000).fill(value).join(',')}]}`;
    for (const body of [many('[]'), many('{"a":1}'), many('1')])
      expect(applyPolicy(policy(), ask('chat', body))).toMatchObject({
        ok: false,
        message: expect.stringContaining('more values'),
      });
    const text = JSON.stringify({ ...sampleOf('chat').request, user: '[{,\\",'.repeat(200_000) });
    expect(applyPolicy(policy(), ask('chat', text))).toMatchObject({ ok: true });
  });

  test('a hundred thousand tools that run at the provider are told in a line', () => {
    const tools = Array.from({ length: 90_000 }, (_, n) => ({ type: `web_search_${n}` }));
    const judged = applyPolicy(
      policy(),
      ask('chat', { ...sampleOf('chat').request, tools, tool_choice: { type: 'web_search_1' } }),
    );
    expect(judged).toMatchObject({ ok: false });
    expect(judged.ok ? '' : judged.note?.length).toBeLessThan(1000);
    const left = applyPolicy(policy(), ask('chat', { ...sampleOf('chat').request, tools }));
    expect(left.ok && left.stripped.length).toBe(50);
  });

  test('depth that would take the stack is refused', () => {
    const body = `{"model":"m-1","messages":${'['.repeat(5000)}${']'.repeat(5000)}}`;
    expect(applyPolicy(policy(), ask('chat', body))).toMatchObject({ ok: false, refusal: 'bad_request' });
  });

  test('every sample passes byte for byte', () => {
    for (const { dialect, request } of SAMPLES) {
      const asked = ask(dialect, request);
      const judged = applyPolicy(policy(), asked);
      expect(judged.ok && judged.body).toBe(asked.body);
    }
  });
});

describe('addresses and headers', () => {
  test('each address means one request of one dialect', () => {
    expect(routeOf('POST', '/v1/chat/completions')).toMatchObject({ dialect: 'chat', operation: 'generate' });
    expect(routeOf('POST', '/responses')).toMatchObject({ dialect: 'responses' });
    expect(routeOf('POST', '/v1/messages/count_tokens?beta=true')).toMatchObject({
      operation: 'count_tokens',
      query: '?beta=true',
    });
    expect(routeOf('POST', '/v1beta/models/m%2F1:streamGenerateContent?alt=sse&key=k')).toMatchObject({
      operation: 'stream',
      model: 'm/1',
      query: '',
    });
    expect(routeOf('POST', '/v1beta/models/m:streamGenerateContent')).toMatchObject({ kind: 'unknown' });
    expect(routeOf('GET', '/v1/chat/completions')).toMatchObject({ kind: 'unknown' });
    expect(routeOf('POST', '/v1/../v1/files')).toMatchObject({ kind: 'unknown' });
    expect(routeOf('GET', '//[')).toMatchObject({ kind: 'unknown' });
  });

  test('a key is found where each client puts it, and no header that holds one goes on', () => {
    expect(attemptKeyOf({ authorization: 'Bearer k1' }, '/')).toBe('k1');
    expect(attemptKeyOf({ 'x-api-key': 'k2' }, '/')).toBe('k2');
    expect(attemptKeyOf({ 'x-goog-api-key': 'k3' }, '/')).toBe('k3');
    expect(attemptKeyOf({}, '/v1beta/models?key=k4')).toBe('k4');
    expect(attemptKeyOf({}, '/')).toBeNull();
    const headers = {
      authorization: 'Bearer k',
      'x-api-key': 'k',
      cookie: 'c',
      host: 'h',
      'anthropic-beta': 'b',
    };
    expect(passedHeaders(headers)).toEqual({ 'anthropic-beta': 'b' });
    expect(returnedHeaders({ 'content-type': 't', 'set-cookie': 'c', 'openai-organization': 'o' })).toEqual({
      'content-type': 't',
    });
  });
});
