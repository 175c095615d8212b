// Files of other tools, rows of datasets, configurations.

import { readRecording } from '../../../src/agent/replay/readRecording.ts';
import { createRedactor } from '../../../src/base/text/redact.ts';
import { parseYaml, YamlError } from '../../../src/base/text/yaml.ts';
import { translateActionRegex } from '../../../src/config/loadConfig.ts';
import { mapMiniSweAgent } from '../../../src/config/miniSweAgent.ts';
import { ConfigError, isKeyValue, parseKeyValue } from '../../../src/config/readConfig.ts';
import { csvRows, readCsv } from '../../../src/dataset/read/readCsv.ts';
import { readJson, rowOfLine } from '../../../src/dataset/read/readRows.ts';
import { parseTestIds } from '../../../src/dataset/read/row.ts';
import { needsBuildKit, traceText } from '../../../src/environment/places/buildImage.ts';
import { readAtif } from '../../../src/formats/atif/atif.ts';
import { allFormats, recognised } from '../../../src/formats/formats.ts';
import {
  readHarborAttempts,
  readHarborJobResult,
  readHarborLock,
  readHarborTrial,
  readHarborTrialConfig,
} from '../../../src/formats/harbor/harbor.ts';
import {
  readInstanceReport,
  reportedIds,
  verdictInRunLog,
} from '../../../src/formats/harness/instanceReport.ts';
import { readRunReport } from '../../../src/formats/harness/runReport.ts';
import { inspectDifference } from '../../../src/formats/inspect/inspect.ts';
import {
  inspectScore,
  inspectText,
  instanceOfSample,
  readInspectHeader,
  readInspectJson,
  readInspectSample,
  readInspectSummaries,
  verdictOfSample,
} from '../../../src/formats/inspect/samples.ts';
import { readLeaderboardResults, readRepoTotals } from '../../../src/formats/leaderboard/results.ts';
import { reasonOf } from '../../../src/formats/miniSweAgent/miniSweAgent.ts';
import { readTrajectory, recordedCalls } from '../../../src/formats/miniSweAgent/trajectory.ts';
import { readHistory } from '../../../src/formats/openHandsOutput/history.ts';
import {
  outputReasonOf,
  patchOfOutput,
  readOutputLine,
  verdictOfRow,
} from '../../../src/formats/openHandsOutput/openHandsOutput.ts';
import { parsePredictions, readPredictions } from '../../../src/formats/predictions.ts';
import { readVerdictMap } from '../../../src/formats/pro/pro.ts';
import { readSweTrajectory, sweReasonOf } from '../../../src/formats/sweTraj/sweTraj.ts';
import {
  readTerminalMetadata,
  readTerminalResults,
} from '../../../src/formats/terminalBench/terminalBench.ts';
import { sameModel } from '../../../src/report/submission/review.ts';
import { scanForSecrets } from '../../../src/report/submission/writeSubmission.ts';
import { readCompose } from '../../../src/suites/harbor/compose.ts';
import { interpolate, Refused, wordsOf } from '../../../src/suites/harbor/composeText.ts';
import { readTaskToml } from '../../../src/suites/harbor/taskToml.ts';
import { normaliseRow } from '../suites.ts';
import { jsonValue, type Reader, readersOf } from './reader.ts';

const WORDS = [
  'NaN',
  '-Infinity',
  '"NaN\\"',
  '{"instance_id":"a-1","model_patch":""}\n',
  '{"a-1":',
  '{"a-1":{},',
  '[{},',
  'null,\n',
  '{"info":{},"messages":[',
  '\ufeff',
  '"\\ud800',
];

const ROW = { instance_id: 'a__a-1', repo: 'a/a', base_commit: 'abc', problem_statement: 'p', patch: '' };
const formats = await allFormats();
const secrets = createRedactor([{ name: 'KEY', value: 'sk-Zq81hT5uYb3nWc7dXe9fAg2h' }]);

/** The whole file is this text, and the text is a value in a file that is otherwise good. */
export const FILE_READERS: readonly Reader[] = [
  ...readersOf(
    {
      'predictions, .json': (text) => parsePredictions(text, 'p.json'),
      'predictions, .jsonl': (text) => parsePredictions(text, 'p.jsonl'),
      'predictions as bytes': (text) => readPredictions(Buffer.from(text), 'p.json'),
      'predictions, Latin-1': (text) => readPredictions(Buffer.from(`${text}é`, 'latin1'), 'p.jsonl'),
      'predictions with a value': (given) => {
        const text = jsonValue(given);
        return parsePredictions(
          JSON.stringify([{ instance_id: text, model_patch: text, model_name_or_path: text }]),
          'p.json',
        );
      },
      readTaskToml,
      needsBuildKit,
      traceText,
      readRunReport,
      'readRunReport with a value': (text) =>
        readRunReport(JSON.stringify({ resolved_ids: [jsonValue(text)] })),
      readInstanceReport: (text) => readInstanceReport(text, 'a__a-1'),
      reportedIds,
      readLeaderboardResults,
      readRepoTotals,
      readTrajectory,
      'trajectory with a value': (given) => {
        const text = jsonValue(given);
        const read = readTrajectory(
          JSON.stringify({
            info: { exit_status: text, submission: text },
            messages: [{ role: 'user', content: text, extra: { response: { id: text } } }],
          }),
        );
        return read.ok && recordedCalls(read.value.messages);
      },
      'dataset, csv': (text) => readCsv(Buffer.from(text)),
      'dataset, cells of csv': (text) => csvRows(`a,b\n${text.replaceAll('"', '')}`),
      'dataset, json': (text) => readJson(Buffer.from(text), 'json'),
      'dataset, jsonl': (text) => readJson(Buffer.from(text), 'jsonl'),
      rowOfLine: (text) => {
        try {
          return rowOfLine(Buffer.from(text));
        } catch {
          // Told with the number of the line: see jsonLines.
          return undefined;
        }
      },
      'dataset, Latin-1': (text) => readJson(Buffer.from(`${text}é`, 'latin1'), 'jsonl'),
      parseTestIds,
      readVerdictMap,
      readSweTrajectory,
      sweReasonOf: (text) => sweReasonOf(`submitted (${text}`),
      outputReasonOf,
      patchOfOutput: (text) => patchOfOutput(`${text}\ndiff --git a/f b/f\n${text}`),
      readOutputLine: (text) => {
        const read = readOutputLine(text);
        return read.ok && [verdictOfRow(read.value), readHistory(read.value.history ?? [], {})];
      },
      'history of OpenHands with a value': (given) => {
        const text = jsonValue(given);
        const event = {
          source: text,
          action: 'run',
          args: { thought: text },
          timestamp: text,
          observation: undefined,
        };
        const meta = {
          tool_call_id: text,
          model_response: { id: text, choices: [{ message: { content: text } }] },
        };
        return readHistory(
          [
            event,
            [
              { ...event, tool_call_metadata: meta },
              { observation: text, content: text },
            ],
            { kind: 'MessageEvent', llm_message: { content: [{ text }] } },
          ],
          { accumulated_cost: text, costs: [{ cost: text, timestamp: text }] },
        );
      },
      readTerminalResults,
      readTerminalMetadata,
      readHarborTrial,
      readHarborJobResult,
      readHarborAttempts,
      readHarborLock,
      readHarborTrialConfig,
      readInspectHeader,
      readInspectJson,
      readInspectSample,
      readInspectSummaries,
      inspectScore,
      inspectText: (text) => inspectText(text, { a: text }),
      'log of Inspect with a value': (given) => {
        const text = jsonValue(given);
        const read = readInspectSample(
          JSON.stringify({
            ...{ id: text, epoch: 1, messages: [{ role: text, content: text, tool_calls: [text] }] },
            ...{ scores: { swe_bench_scorer: { value: text } }, error: { message: text } },
          }),
        );
        if (!read.ok) return read;
        const header = {
          status: 'success' as const,
          eval: { task: text, task_id: '', model: text, created: text },
        };
        const whole = { ...header.eval, dataset: {}, config: {}, packages: {} };
        const log = { path: 'a', header: { ...header, eval: whole }, samples: [read.value], warnings: [] };
        return [instanceOfSample(log, read.value), verdictOfSample(log, read.value), inspectDifference(log)];
      },
      readAtif,
      'recognised, a file': (text) =>
        recognised({ name: 'report.json', files: null, head: () => text }, formats),
      'recognised, a folder': (text) =>
        recognised({ name: text, files: ['result.json', 'results.json', text], head: () => text }, formats),
      verdictInRunLog: (text) => verdictInRunLog(`report: {${text}`, 'a'),
      'rows of datasets': (text) => {
        for (const name of [...Object.keys(ROW), 'image', 'docker_image', 'FAIL_TO_PASS', 'eval_script'])
          normaliseRow({ ...ROW, [name]: text });
        normaliseRow({ org: text, repo: text, number: text, fix_patch: text });
        normaliseRow({ ...ROW, dockerhub_tag: text });
        normaliseRow({ ...ROW, instance_id: text, test_cmds: [text] });
      },
      scanForSecrets: (text) => scanForSecrets('a', text, secrets),
      sameModel: (text) => sameModel(text, text),
      reasonOf: (text) => reasonOf(text, {}, 1),
      translateActionRegex,
      isKeyValue,
      mapMiniSweAgent: (text) =>
        mapMiniSweAgent(
          { agent: { system_template: text, [text.slice(0, 100)]: text }, model: { model_name: text } },
          text,
        ),
    },
    { words: [...WORDS, 'sk-', 'ghp_', 'https://a:b', '(?P<', '\\Z', 'a=', 'a.'] },
  ),
  ...readersOf(
    { parseKeyValue: (text) => parseKeyValue(`a=${text}`) },
    { words: WORDS, refuses: [ConfigError] },
  ),
  ...readersOf(
    {
      readRecording: (text) =>
        readRecording({ info: { config: { agent: { a: text } } }, messages: [{ role: text }] }),
    },
    { words: WORDS, refuses: [Error] },
  ),
  ...readersOf(
    {
      parseYaml,
      readCompose: (text) =>
        readCompose(text, { files: new Set(['a']), taskHas: () => true, image: undefined, env: {} }),
    },
    {
      words: ['- ', '-\n', 'a: ', '? ', '&a ', '*a ', '!a ', '| ', '>\n', "'a' ", '  a:\n', '[a, ', '{a: '],
      refuses: [YamlError],
    },
  ),
  ...readersOf(
    { interpolate: (text) => interpolate(text, { A: 'x' }), wordsOf },
    { words: ['$', '${', '${A:-', '${A+', '}', '$$', "'", '"', '\\', ' '], refuses: [Refused] },
  ),
];
