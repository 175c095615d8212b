/**
 * The model that tests ask, behind the gateway that programs have too. Each of its calls is in the ledger of the attempt that is graded, as
 * `grading`, and counts against the budget of the run. A request that the same attempt had answered before is answered from the record.
 */
import { createHash } from 'node:crypto';
import { gunzipSync, gzipSync } from 'node:zlib';
import type { Gateway } from '../../agent/gateway/gateway.ts';
import { gatewayConfigSchema } from '../../agent/gateway/gatewayConfig.ts';
import type { Closing } from '../../base/async/timer.ts';
import type { VariableValues } from '../../base/hostVariables.ts';
import type { Redactor } from '../../base/text/redact.ts';
import type { SuiteConfig } from '../../config/suiteConfig.ts';
import type { Given, JudgeSession } from '../../grading/given.ts';
import { type MeteredCall, meteredCall } from '../../model/meteredCall.ts';
import {
  type Model,
  type ModelFactory,
  type ModelFailureKind,
  type ModelReply,
  modelSuccess,
  type Wire,
  type WireRequest,
} from '../../model/model.ts';
import { createModelFactory } from '../../model/modelFactory.ts';
import { clientVariable, MAKERS_ADDRESSES } from '../../model/names.ts';
import type { Store } from '../../store/open.ts';
import { GRADING, insertJudgeCall, type JudgeCallRow, judgeCallsOf } from '../../store/records/modelCalls.ts';
import type { Variables } from '../caller.ts';
import type { RunBudget } from '../control/budget.ts';
import { modelAccess } from '../modelAccess.ts';
import { ledgerRows } from '../record/ledgerRow.ts';

/** The attempt whose tests ask. */
interface Graded {
  readonly attemptId: number;
  readonly instanceId: string;
  readonly epoch: number;
}

/** Variables and a judge that tasks may have of this machine. */
export interface OpenSuite {
  /** Variables that are set, by name. */
  readonly variables: VariableValues;
  /** There is a judge. */
  readonly asks: boolean;
  /** undefined where nothing was allowed. */
  forTests(graded: Graded): Given | undefined;
}

interface JudgeParts {
  readonly store: Store;
  readonly env: Variables;
  readonly redactor: Redactor;
  readonly budget: RunBudget;
  readonly note: (text: string) => void;
}

const NOTHING: OpenSuite = { variables: {}, asks: false, forTests: () => undefined };

export async function openSuite(
  suite: SuiteConfig | undefined,
  parts: JudgeParts,
  closing: Closing,
): Promise<OpenSuite> {
  if (!suite || (suite.env.length === 0 && !suite.judge)) return NOTHING;
  const { env, redactor } = parts;
  const variables = Object.fromEntries(
    suite.env.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]] as const])),
  );
  const clean = (text: string) => redactor.text(text);
  if (!suite.judge) return { variables, asks: false, forTests: () => ({ variables, clean }) };
  const factory = await createModelFactory(suite.judge, modelAccess(suite.judge, parts));
  closing.add(() => factory.close());
  const { createGateway } = await import('../../agent/gateway/httpGateway.ts');
  const gateway = createGateway();
  closing.add(() => gateway.close());
  // A key of a provider is the judge's where there is one, and never that of this machine.
  const beside = Object.fromEntries(
    Object.entries(variables).filter(([name]) => clientVariable(name) === undefined),
  );
  const isKey = (name: string): boolean => clientVariable(name)?.is === 'key';
  const serves = (name: string): boolean => clientVariable(name) !== undefined;
  return {
    variables,
    asks: true,
    forTests: (graded) => ({
      variables: beside,
      clean,
      judge: { isKey, serves, open: () => openJudge(graded, factory, gateway, parts) },
    }),
  };
}

/**
 * Failures that say something of the request. The verifier decides what they mean; every other failure is an outage (observed:
 * tests/suites/harbor/judge.test.ts).
 */
const OF_THE_REQUEST = new Set<ModelFailureKind>(['rejected', 'refusal', 'context', 'empty', 'bad_call']);

function openJudge(graded: Graded, factory: ModelFactory, gateway: Gateway, parts: JudgeParts): JudgeSession {
  const { note } = parts;
  const model = factory.create({ instanceId: graded.instanceId, epoch: graded.epoch });
  const record = recordOfJudge(graded, parts);
  /** The reason why a request has no answer; null once it has one. */
  const answered = new Map<string, string | null>();
  const otherNames = new Set<string>();
  let stopped: string | null = null;
  let closing = false;
  let begun = 0;
  let ended = 0;
  const session = gateway.open({
    attempt: graded.instanceId,
    model: { ...plainModel(model), ...(model.wire && { wire: record.through(model.wire) }) },
    limits: { steps: 0, costDollars: 0, tokens: 0 },
    config: gatewayConfigSchema.parse({ translate: true }),
    // The named judge answers, whatever name the tests ask for.
    anyModel: true,
    listener() {
      begun += 1;
      return record.listener();
    },
    onCall(call) {
      ended += 1;
      if (call.modelAsked !== call.model && call.modelAsked !== model.name) otherNames.add(call.modelAsked);
      const kind = call.failure?.metadata?.kind;
      const outage = call.failure !== null && !(kind !== undefined && OF_THE_REQUEST.has(kind));
      answered.set(keyOf(call.sent), outage ? call.failure!.message : null);
    },
    onRefused: (message) => {
      if (!closing) stopped ??= message;
    },
    onNote: (text) => note(`${graded.instanceId}: the judge: ${text}`),
  });
  void session.ended.then((end) => {
    if (end.kind === 'thrown') stopped ??= end.error instanceof Error ? end.error.message : String(end.error);
  });
  return {
    handle: session.handle,
    env(origin, wanted) {
      const addresses = [
        ...MAKERS_ADDRESSES,
        ...Object.entries(wanted).flatMap(([key, name]) => (isAddress(name) ? [key, name] : [])),
      ];
      return {
        ...Object.fromEntries(addresses.map((name) => [name, addressFor(name, origin)])),
        ...Object.fromEntries(
          Object.entries(wanted).flatMap(([key, name]) =>
            clientVariable(name)?.is === 'key'
              ? [[key, session.key]]
              : isAddress(name)
                ? [[key, addressFor(name, origin)]]
                : [],
          ),
        ),
      };
    },
    async close() {
      closing = true;
      const waiting = begun - ended;
      const { calls } = await session.close();
      record.close();
      const unanswered = [...answered.values()].find((why) => why !== null) ?? null;
      const late = waiting > 0 ? 'a request was still waiting for its answer when the tests ended' : null;
      return {
        model: model.name,
        calls,
        recorded: record.played(),
        otherNames: [...otherNames],
        lost: stopped ?? unanswered ?? late,
      };
    },
  };
}

const isAddress = (name: string): boolean => clientVariable(name)?.is === 'address';
const addressFor = (name: string, origin: string): string =>
  `${origin}${clientVariable(name)?.path ?? '/v1'}`;

/** A model's methods may be of a class. */
const plainModel = (model: Model): Model => ({
  name: model.name,
  query: model.query.bind(model),
  templateVars: model.templateVars.bind(model),
});

const keyOf = (body: Uint8Array): string => createHash('sha256').update(body).digest('base64');

/** The key of a request, the same for every asker. */
const requestKey = (
  { dialect, model: wireModel }: Pick<Wire, 'dialect' | 'model'>,
  request: WireRequest,
): string =>
  createHash('sha256')
    .update(`${dialect} ${request.operation} ${request.model || wireModel} ${request.query}\n`)
    .update(request.body)
    .digest('hex');

/** One verification: every recorded answer is given once, in the order in which it came. */
function recordOfJudge({ attemptId, instanceId }: Graded, { store, redactor, budget, note }: JudgeParts) {
  const known = new Map<string, JudgeCallRow[]>();
  for (const row of judgeCallsOf(store, attemptId)) known.set(row.key, [...(known.get(row.key) ?? []), row]);
  let played = 0;
  const calls: MeteredCall[] = [];
  return {
    played: () => played,
    /** When no call is made any more. */
    close(): void {
      for (const call of calls) call.lose();
    },
    through: (wire: Wire): Wire => ({
      dialect: wire.dialect,
      model: wire.model,
      async send(request, sink, options) {
        const key = requestKey(wire, request);
        const row = known.get(key)?.shift();
        if (row) {
          played += 1;
          sink?.head(row.status, JSON.parse(row.headers) as Record<string, string>);
          sink?.data(gunzipSync(row.response));
          return { response: modelSuccess(JSON.parse(row.reply) as ModelReply), refused: null };
        }
        const bytesSoFar: Uint8Array[] = [];
        let head: { status: number; headers: Readonly<Record<string, string>> } = {
          status: 200,
          headers: {},
        };
        const answer = await wire.send(
          request,
          sink && {
            head(status, headers) {
              head = { status, headers };
              sink.head(status, headers);
            },
            data(bytes) {
              bytesSoFar.push(Uint8Array.from(bytes));
              sink.data(bytes);
            },
          },
          options,
        );
        if (answer.response.success)
          insertJudgeCall(store, {
            attempt_id: attemptId,
            at: new Date().toISOString(),
            key,
            dialect: wire.dialect,
            operation: request.operation,
            model: request.model,
            request: gzipSync(redactor.bytes(request.body)),
            status: head.status,
            headers: redactor.json(JSON.stringify(head.headers)),
            response: gzipSync(redactor.bytes(Buffer.concat(bytesSoFar))),
            reply: redactor.json(JSON.stringify(answer.response.result)),
          });
        return answer;
      },
    }),
    listener(): MeteredCall {
      // The clock of the tests is in their container, and goes on.
      const waits = () => note(`${instanceId}: the judge waits until the run's budget has room`);
      const call = meteredCall({
        funds: {
          reserve: (estimate, signal) => budget.reserve(estimate, signal, waits),
          reserveNow: budget.reserveNow,
        },
        ...ledgerRows({ store, redactor }, { attempt_id: attemptId, step: 0, label: GRADING }),
      });
      calls.push(call);
      return call;
    },
  };
}
