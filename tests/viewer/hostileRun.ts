/** A run and a trajectory that attack whoever looks at them. */
import { gzipSync } from 'node:zlib';
import type { Store } from '../../src/store/open.ts';
import { addRun } from './fixture.ts';
import { iso, put, sha } from './fixtureRows.ts';
import { addMessage } from './fixtureSteps.ts';

/** Everything a hostile model or container could write, in every field that a page shows. */
export const HOSTILE = {
  script: '</script><script>window.__pwned = "script"</script>',
  image: '<img src=x onerror="window.__pwned = \'img\'">',
  svg: '<svg/onload=window.__pwned="svg">',
  link: '[click](javascript:window.__pwned="link") javascript:alert(1)',
  ansi: '\u001b]0;owned\u0007\u001b[2J\u001b[31mred\u001b[0m \u001b]8;;javascript:alert(1)\u0007link\u001b]8;;\u0007',
  bidi: 'access \u202e level\u2066 user \u2069',
  controls: 'nul \u0000 bell \u0007 backspace \u0008 lone \ud800 del \u007f',
  template: `{{constructor.constructor("window.__pwned=1")()}} $\{window.__pwned=2}`,
};

const ALL = Object.values(HOSTILE).join('\n');

const hostilePatch = (): string => `diff --git a/${HOSTILE.image} b/${HOSTILE.image}
--- a/x<script>window.__pwned=1</script>.html
+++ b/x<script>window.__pwned=1</script>.html
@@ -1,2 +1,2 @@ ${HOSTILE.image}
-${HOSTILE.script}
+${HOSTILE.image} ${HOSTILE.svg} ${HOSTILE.bidi}
 context </code></pre></td><script>window.__pwned=1</script>
`;

function addHostileTrial(store: Store, run: number): number {
  const arm = put(store, 'arms', {
    run_id: run,
    position: 7,
    name: '__proto__',
    model: HOSTILE.script,
    config: '{}',
  });
  const pk = put(store, 'instances', {
    run_id: run,
    position: 5,
    instance_id: 'constructor',
    repo: HOSTILE.svg,
    difficulty: HOSTILE.image,
    image: HOSTILE.link,
    row_hash: 'x',
    row: JSON.stringify({ problem_statement: ALL, patch: hostilePatch(), FAIL_TO_PASS: ['__proto__'] }),
  });
  return put(store, 'trials', {
    run_id: run,
    arm_id: arm,
    instance_pk: pk,
    position: 5,
    state: 'sealed',
  });
}

function addHostileAttempt(store: Store, trialId: number): number {
  const attempt = put(store, 'attempts', {
    trial_id: trialId,
    number: 1,
    state: 'ended',
    started_at: iso(0, 0),
    ended_at: iso(0, 9_000),
    exit_reason: 'submitted',
    exit_class: 'agent',
    exit_status: HOSTILE.image,
    error_message: ALL,
    model_patch: hostilePatch(),
    patch_sha256: sha(hostilePatch()),
    steps: 2,
    suspicion: JSON.stringify([{ rule: '__proto__', step: 1, evidence: ALL }, { rule: HOSTILE.image }]),
    notes: JSON.stringify([ALL]),
  });
  store.prepare('UPDATE trials SET final_attempt_id = ? WHERE id = ?').run(attempt, trialId);
  return attempt;
}

function addHostileStep(store: Store, attempt: number): void {
  addMessage(store, attempt, 0, 'system', ALL, iso(0, 0));
  addMessage(store, attempt, 1, 'assistant', `${ALL}\n\`\`\`bash\n${ALL}\n\`\`\``, iso(0, 1), {
    __proto__x: 1,
    tool_calls: [
      {
        id: '1',
        type: 'function',
        function: { name: HOSTILE.image, arguments: JSON.stringify({ command: ALL }) },
      },
    ],
    reasoning_content: ALL,
  });
  addMessage(store, attempt, 2, 'user', ALL, iso(0, 2));
  addMessage(store, attempt, 3, '__proto__', ALL, iso(0, 3));
  put(store, 'commands', {
    attempt_id: attempt,
    step: 1,
    idx: 0,
    message_seq: 2,
    command: ALL,
    output: Buffer.from(ALL),
    exit_code: 0,
    timed_out: 0,
    total_bytes: 9,
    omitted_bytes: 0,
    replaced_bytes: 0,
    oom_killed: 0,
    transport: 'exec',
    started_at: iso(0, 1),
    duration_ms: 1,
  });
}

function addHostileVerdict(store: Store, run: number, trialId: number, attempt: number): void {
  put(store, 'evaluations', {
    run_id: run,
    trial_id: trialId,
    attempt_id: attempt,
    instance_id: 'constructor',
    model: HOSTILE.image,
    patch_sha256: sha(hostilePatch()),
    spec_hash: 'x',
    harness: HOSTILE.image,
    outcome: 'unresolved',
    resolved: 0,
    report:
      '{"tests_status":{"FAIL_TO_PASS":{"success":[],"failure":["__proto__","<img src=x onerror=window.__pwned=1>"]}}}',
    log: gzipSync(`${ALL}\nFAILED __proto__\n`),
    started_at: iso(0, 10_000),
    error_message: ALL,
  });
}

export function addHostileRun(store: Store): { run: number; attempt: number } {
  return store.transaction(() => {
    const run = addRun(store, { name: `evil ${HOSTILE.image}`, instances: 1, steps: 2, seed: 9 });
    const trialId = addHostileTrial(store, run);
    const attempt = addHostileAttempt(store, trialId);
    addHostileStep(store, attempt);
    addHostileVerdict(store, run, trialId, attempt);
    put(store, 'events', {
      run_id: run,
      at: iso(0, 1),
      type: 'breaker',
      data: JSON.stringify({ reason: ALL }),
    });
    return { run, attempt };
  })();
}
