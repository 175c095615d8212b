// From endings to exit reasons: limits, model failures, broken environments, our own stops, defects.
import { describe, expect, test } from 'vitest';
import type { AgentResult } from '../../src/agent/contract.ts';
import { EnvironmentError } from '../../src/environment/environment.ts';
import { pullError } from '../../src/environment/places/pullFailure.ts';
import { EXIT_REASONS } from '../../src/outcome.ts';
import { StopReason } from '../../src/run/control/stop.ts';
import { endingOfError, endingOfResult } from '../../src/run/exit.ts';

const result = (more: Partial<AgentResult>): AgentResult => ({
  exitStatus: 'LimitsExceeded',
  submission: '',
  messages: [],
  steps: 3,
  costNano: 0,
  ...more,
});
const failed = (kind: string, code = 'UNKNOWN'): AgentResult =>
  result({ exitStatus: 'ModelFailed', error: { code, message: 'm', metadata: { kind } as never } });

describe('endings', () => {
  test.each([
    [result({ exitStatus: 'Submitted' }), 'submitted'],
    [result({ limit: 'steps' }), 'limit_steps'],
    [result({ limit: 'cost' }), 'limit_cost'],
    [result({ exitStatus: 'TimeExceeded', limit: 'wall_time' }), 'limit_wall_time'],
    [result({ exitStatus: 'RepeatedFormatError', limit: 'format_errors' }), 'format_errors_exceeded'],
    [failed('unavailable'), 'model_unavailable'],
    [failed('auth'), 'auth_failed'],
    [failed('quota'), 'quota_exhausted'],
    [failed('refusal'), 'model_refusal'],
    [failed('context'), 'context_window_exceeded'],
    [result({ error: { code: 'CONTEXT_LENGTH_EXCEEDED', message: '' } }), 'context_window_exceeded'],
    [result({ exitStatus: 'Nonsense' }), 'config_invalid'],
  ] as const)('%#: %o', (agentResult, reason) => {
    expect(endingOfResult(agentResult).reason).toBe(reason);
  });

  test('an OOM-killed container is env_died with its evidence, and never a failure of the model', () => {
    const ending = endingOfError(
      new EnvironmentError('died', 'the container died', { sub: 'oom', evidence: { exitCode: 137 } }),
      new AbortController().signal,
    );
    expect(ending).toMatchObject({ reason: 'env_died', detail: 'oom', evidence: { exitCode: 137 } });
    expect(EXIT_REASONS[ending.reason].class).toBe('infra');
  });

  test('a failed build is no failed pull', () => {
    const facts = {
      image: 'swebatch.internal/harbor:1',
      registry: 'swebatch.internal',
      hasCredentials: false,
    };
    const error = pullError('build_failed', { ...facts, engineMessage: 'the build failed: no cc' });
    const ending = endingOfError(error, new AbortController().signal);
    expect(ending.reason).toBe('env_image_build_failed');
    expect(`${EXIT_REASONS[ending.reason].says}; ${ending.message}`).not.toMatch(/pull/);
  });

  test('an abort counts as ours only when our signal fired', () => {
    const abortError = Object.assign(new Error('aborted'), { name: 'AbortError' });
    const ours = new AbortController();
    ours.abort(new StopReason('stalled', 'no progress', 'exec'));
    expect(endingOfError(abortError, ours.signal)).toMatchObject({ reason: 'stalled', detail: 'exec' });
    expect(endingOfError(abortError, new AbortController().signal).reason).toBe('internal_error');
  });

  test('a defect keeps its stack for the record and asks for a report [S-30]', () => {
    const ending = endingOfError(new TypeError('x is undefined'), new AbortController().signal);
    expect(ending.reason).toBe('internal_error');
    expect(ending.message).toMatch(/x is undefined.*report/);
    expect(ending.evidence?.stack).toContain('TypeError');
  });
});

test('a recorded end is that end again, whatever the code of its failure', () => {
  const recordedEnd = {
    reason: 'env_died',
    detail: 'killed',
    exitStatus: 'EnvironmentError',
    again: true,
  } as const;
  const error = {
    code: 'UNKNOWN',
    message: 'it died',
    metadata: { kind: 'unavailable', recordedEnd } as const,
  };
  expect(endingOfResult(result({ exitStatus: 'ModelFailed', error }))).toMatchObject({
    reason: 'env_died',
    detail: 'killed',
    exitStatus: 'EnvironmentError',
    message: 'it died',
    recordedAgain: true,
  });
});
