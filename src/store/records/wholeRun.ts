/**
 * Every row of a run, from one record into another: an export carries them, an import puts them back, and parts of a run become the whole of it.
 * Ids are given anew; what refers to them is changed with them.
 */
import { errorText } from '../../base/text/errorText.ts';
import { type Store, statement } from '../open.ts';
import { all, change, column, first, insert, raw } from '../query.ts';
import { guarded } from '../writing.ts';
import { sumAttempt } from './modelCalls.ts';
import { type RunRow, runById } from './runs.ts';

type Value = string | number | null | Uint8Array;
export type RecordedRow = readonly [table: string, row: Readonly<Record<string, Value>>];

/** The tables in the order of writing, with the columns that hold an id of another row. Tables of a process alone (controls, rates) stay. */
const OF_RUN = {
  runs: {},
  arms: { run_id: 'runs' },
  instances: { run_id: 'runs' },
  trials: { run_id: 'runs', arm_id: 'arms', instance_pk: 'instances' },
  attempts: { trial_id: 'trials' },
  commands: { attempt_id: 'attempts' },
  messages: { attempt_id: 'attempts', output_id: 'commands' },
  model_calls: { attempt_id: 'attempts' },
  phases: { attempt_id: 'attempts' },
  connections: { attempt_id: 'attempts' },
  program_calls: { attempt_id: 'attempts' },
  judge_calls: { attempt_id: 'attempts' },
  leases: { attempt_id: 'attempts' },
  evaluations: { run_id: 'runs', trial_id: 'trials', attempt_id: 'attempts' },
  events: { run_id: 'runs' },
  verdicts: { run_id: 'runs' },
} as const satisfies Readonly<Record<string, Readonly<Record<string, string>>>>;
type Table = keyof typeof OF_RUN;

const OF_ATTEMPT = Object.entries(OF_RUN).flatMap(([table, refers]) =>
  'attempt_id' in refers && table !== 'evaluations' ? [table] : [],
);

/** The rows of one arm or of all. Bodies are read for one attempt at a time; other statements may run between two rows. */
export function* rowsOfRun(db: Store, runId: number, arm?: string): Generator<RecordedRow> {
  const rows = function* (table: string, where: ReturnType<typeof raw>): Generator<RecordedRow> {
    for (const row of all(db)<
      Record<string, Value>
    >`SELECT * FROM ${raw(table)} WHERE ${where} ORDER BY rowid`)
      yield [table, row];
  };
  const ofRun = raw('run_id = ?', runId);
  const trials =
    arm === undefined
      ? ofRun
      : raw('run_id = ? AND arm_id IN (SELECT id FROM arms WHERE name = ?)', runId, arm);
  yield* rows('runs', raw('id = ?', runId));
  yield* rows('arms', arm === undefined ? ofRun : raw('run_id = ? AND name = ?', runId, arm));
  yield* rows('instances', ofRun);
  yield* rows('trials', trials);
  const attempts = column(db)<number>`
    SELECT id FROM attempts WHERE trial_id IN (SELECT id FROM trials WHERE ${trials}) ORDER BY id`;
  for (const id of attempts) {
    yield* rows('attempts', raw('id = ?', id));
    for (const table of OF_ATTEMPT)
      for (const row of all(db)<Record<string, Value>>`
        SELECT * FROM ${raw(table)} WHERE attempt_id = ${id} ORDER BY ${raw(ORDER[table] ?? 'id')}`)
        yield [table, row];
  }
  const evaluations = column(db)<number>`SELECT id FROM evaluations WHERE run_id = ${runId}
    AND (trial_id IS NULL OR trial_id IN (SELECT id FROM trials WHERE ${trials})) ORDER BY id`;
  for (const id of evaluations) yield* rows('evaluations', raw('id = ?', id));
  yield* rows('events', ofRun);
  yield* rows('verdicts', arm === undefined ? ofRun : raw('run_id = ? AND arm = ?', runId, arm));
}

export const eventsOfRun = (db: Store, runId: number): RecordedRow[] =>
  all(db)<RecordedRow[1]>`SELECT * FROM events WHERE run_id = ${runId} ORDER BY seq`.map((row) => [
    'events',
    row,
  ]);

/** Keys of tables without an id of their own. */
const ORDER: Readonly<Record<string, string>> = { messages: 'seq', phases: 'seq', program_calls: 'call' };

/** The rows are not those of one run; the message names what differs. */
export class RowsError extends Error {
  override readonly name = 'RowsError';
}

/** A part is all of a run, or some of its trials. All of it is written, or nothing. Throws a RowsError for rows that do not belong together. */
export async function putRun(
  db: Store,
  name: string,
  parts: Iterable<Iterable<RecordedRow> | AsyncIterable<RecordedRow>>,
): Promise<RunRow> {
  guarded(db, () => statement(db, 'BEGIN IMMEDIATE').run());
  try {
    const writer = new RunWriter(db, name);
    for (const part of parts) {
      writer.beginPart();
      for await (const [table, row] of part) writer.put(table, row);
      writer.endPart();
    }
    const run = writer.end();
    guarded(db, () => statement(db, 'COMMIT').run());
    return run;
  } catch (error) {
    if (db.inTransaction) statement(db, 'ROLLBACK').run();
    throw error;
  }
}

class RunWriter {
  readonly #db: Store;
  readonly #name: string;
  /** The ids of rows of this part now, by table. */
  #ids = new Map<string, Map<Value, number>>();
  /** Trials of this part, with their final attempt. */
  #final: [trial: number, attempt: Value][] = [];
  #ended: number[] = [];
  #run: RunRow | undefined;
  #isLater = false;
  readonly #columns = new Map<string, ReadonlySet<string>>();

  constructor(db: Store, name: string) {
    this.#db = db;
    this.#name = name;
  }

  beginPart(): void {
    this.#isLater = this.#run !== undefined;
    this.#ids = new Map();
    this.#final = [];
    this.#ended = [];
  }

  put(table: string, row: RecordedRow[1]): void {
    if (!isTable(table)) throw new RowsError(`${table} is no table of a run`);
    const known = this.#columnsOf(table);
    const strange = Object.keys(row).find((key) => !known.has(key));
    if (strange !== undefined) throw new RowsError(`${table} has no column ${strange}`);
    const key = table === 'events' ? 'seq' : 'id';
    const { [key]: old = null, ...given } = row;
    // `seq` and `call` of tables without ids count within an attempt.
    const own: Record<string, Value> = known.has(key) ? given : { ...row };
    for (const [refers, to] of Object.entries(OF_RUN[table]))
      own[refers] = this.#idNow(table, to, own[refers] ?? null);
    if (table === 'trials') own.final_attempt_id = null;
    const id = this.#known(table, own) ?? this.#insert(table, own);
    if (table === 'runs') this.#run ??= runById(this.#db, id)!;
    if (table === 'trials') this.#final.push([id, row.final_attempt_id ?? null]);
    if (table === 'attempts' && row.state === 'ended') this.#ended.push(id);
    if (!REFERRED.has(table)) return;
    const ids = this.#ids.get(table) ?? new Map<Value, number>();
    this.#ids.set(table, ids.set(old, id));
  }

  #insert(table: Table, row: Record<string, Value>): number {
    try {
      return insert(this.#db, table, row);
    } catch (error) {
      // The rules of the schema: what a record of ours holds never breaks one.
      if (/SQLITE_(?:CONSTRAINT|MISMATCH)/.test(errorText(error)))
        throw new RowsError(`a row of ${table} is not one: ${errorText(error)}`);
      throw error;
    }
  }

  endPart(): void {
    if (!this.#run || !this.#ids.has('runs')) throw new RowsError('the row of the run is missing');
    for (const [trial, attempt] of this.#final)
      if (attempt !== null)
        change(
          this.#db,
        )`UPDATE trials SET final_attempt_id = ${this.#idNow('trials', 'attempts', attempt)} WHERE id = ${trial}`;
    for (const id of this.#ended) sumAttempt(this.#db, id);
  }

  #columnsOf(table: Table): ReadonlySet<string> {
    const known = this.#columns.get(table);
    if (known) return known;
    const found = new Set(column(this.#db)<string>`SELECT name FROM pragma_table_info(${table})`);
    this.#columns.set(table, found);
    return found;
  }

  end(): RunRow {
    if (!this.#run) throw new RowsError('there is no run');
    return runById(this.#db, this.#run.id)!;
  }

  #idNow(table: string, refersTo: string, old: Value): number | null {
    if (old === null) return null;
    const id = this.#ids.get(refersTo)?.get(old);
    if (id === undefined)
      throw new RowsError(`a row of ${table} refers to one of ${refersTo} that is missing`);
    return id;
  }

  /** The row of an earlier part that this one is as well; throws where the two cannot be parts of one run. */
  #known(table: Table, row: Record<string, Value>): number | undefined {
    if (table === 'runs') row.name = this.#name;
    if (!this.#isLater) return undefined;
    const db = this.#db;
    const same = (found: Row | undefined, what: string, keys: readonly string[]): number | undefined => {
      const differs = found && keys.find((key) => found[key] !== row[key]);
      if (differs) throw new RowsError(`the parts are not of one run: ${what} has another ${differs}`);
      return found?.id;
    };
    if (table === 'runs') return this.#sameRun(row);
    if (table === 'arms')
      return same(
        first(db)`SELECT * FROM arms WHERE run_id = ${row.run_id} AND name = ${row.name}`,
        `arm ${row.name}`,
        ['model', 'config'],
      );
    if (table === 'instances')
      return same(
        first(db)`SELECT * FROM instances WHERE run_id = ${row.run_id} AND instance_id = ${row.instance_id}`,
        String(row.instance_id),
        ['row_hash'],
      );
    if (
      table === 'trials' &&
      first(db)`SELECT 1 FROM trials
      WHERE arm_id = ${row.arm_id} AND instance_pk = ${row.instance_pk} AND epoch = ${row.epoch}`
    )
      throw new RowsError(`two parts hold the same trial (epoch ${row.epoch})`);
    // Events of the whole run stand in every part of it.
    if (table === 'events')
      return first(db)<{ seq: number }>`SELECT seq FROM events
        WHERE run_id = ${row.run_id} AND at = ${row.at} AND type = ${row.type} AND data = ${row.data}`?.seq;
    return undefined;
  }

  #sameRun(row: Record<string, Value>): number {
    const run = this.#run!;
    const differs = (['config_hash', 'dataset_hash'] as const).find((key) => run[key] !== row[key]);
    if (differs) throw new RowsError(`the parts are not of one run: ${differs} differs`);
    if (run.status === 'complete' && row.status !== 'complete')
      change(
        this.#db,
      )`UPDATE runs SET status = ${row.status}, finished_at = ${row.finished_at} WHERE id = ${run.id}`;
    return run.id;
  }
}

type Row = Readonly<Record<string, Value>> & { readonly id: number };

const isTable = (name: string): name is Table => Object.hasOwn(OF_RUN, name);
const REFERRED: ReadonlySet<string> = new Set(
  Object.values(OF_RUN).flatMap((refers) => Object.values(refers)),
);
