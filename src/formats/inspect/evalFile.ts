/** Reads an .eval file: a zip with header.json, a file for each sample, and summaries of all. What is too long or damaged is taken from its summary. */
import { basename } from 'node:path';
import { errorText } from '../../base/text/errorText.ts';
import { type InspectSample, readInspectHeader, readInspectSample, readInspectSummaries } from './log.ts';
import type { InspectLog } from './samples.ts';
import { openZip, ZipError, type ZipFile } from './zipFile.ts';

/** A header with the ids of 100,000 samples has 4 MB. */
const MOST_HEADER = 64 * 1024 * 1024;
const MOST_SUMMARIES = 256 * 1024 * 1024;
/** JSON of this size takes a second and a gigabyte to read. */
const MOST_SAMPLE = 128 * 1024 * 1024;
/** Of messages that are kept for one log. */
const MOST_MESSAGES = 512 * 1024 * 1024;

/** The log, or why it cannot be read. */
export async function readEvalFile(path: string): Promise<Omit<InspectLog, 'path'> | string> {
  try {
    await using zip = await openZip(path);
    return await logIn(zip, basename(path));
  } catch (error) {
    if (error instanceof ZipError || (error as NodeJS.ErrnoException).code) return errorText(error);
    throw error;
  }
}

async function logIn(zip: ZipFile, name: string): Promise<Omit<InspectLog, 'path'> | string> {
  const warnings: string[] = [];
  const started = '_journal/start.json';
  const headerName = zip.names.includes('header.json') ? 'header.json' : started;
  if (!zip.names.includes(headerName)) return 'it has no header.json: it is no log of Inspect';
  if (headerName === started) warnings.push(`${name} was never finished: it has no results of its own`);
  const header = readInspectHeader(await zip.read(headerName, MOST_HEADER));
  if (!header.ok) return `${headerName}: ${header.message}`;
  const summaries = await summariesIn(zip, warnings);
  const samples: InspectLog['samples'][number][] = [];
  let room = MOST_MESSAGES;
  for (const file of zip.names.filter((each) => /^samples\/[^/]+\.json$/.test(each))) {
    const found = await sampleIn(zip, file);
    const place = typeof found === 'string' ? placeInName(file) : `${found.id} ${found.epoch}`;
    const summary = summaries.get(place);
    summaries.delete(place);
    if (typeof found === 'string') {
      warnings.push(
        `${name}: ${found.startsWith(file) ? found : `${file}: ${found}`}${summary ? '; its summary is used' : ''}`,
      );
      samples.push({ ...(summary ?? lostSample(place, found)), unread: found });
      continue;
    }
    const length = lengthOf(found);
    room -= length;
    samples.push(
      room >= 0 ? found : { ...found, messages: [], unread: 'the log has more than 512 MB of messages' },
    );
    if (room < 0) room += length;
  }
  // Logs can be written without their samples.
  for (const summary of summaries.values())
    samples.push({ ...summary, unread: 'the log holds its summary alone' });
  return { header: header.value, samples, warnings };
}

/** It was run, and what became of it is not known. */
function lostSample(place: string, why: string): InspectSample {
  const [id = '', epoch = ''] = place.split(' ');
  const empty = { messages: [], attachments: {}, model_usage: {} };
  return { ...empty, id, epoch: Number(epoch) || 1, error: { message: `unreadable: ${why}`, traceback: '' } };
}

const lengthOf = ({ messages }: InspectSample): number => JSON.stringify(messages).length;

/** `samples/<id>_epoch_<n>.json` as "<id> <n>". */
const placeInName = (file: string): string =>
  file.replace(/^samples\//, '').replace(/_epoch_(\d+)\.json$/, ' $1');

async function sampleIn(zip: ZipFile, file: string): Promise<InspectSample | string> {
  try {
    const read = readInspectSample(await zip.read(file, MOST_SAMPLE));
    return read.ok ? read.value : read.message;
  } catch (error) {
    if (error instanceof ZipError) return error.message;
    throw error;
  }
}

/** Those of a log that was cut off stand in its journal, a few in each file. */
async function summariesIn(zip: ZipFile, warnings: string[]): Promise<Map<string, InspectSample>> {
  const whole = zip.names.includes('summaries.json');
  const names = whole
    ? ['summaries.json']
    : zip.names.filter((each) => /^_journal\/summaries\/\d+\.json$/.test(each));
  const found = new Map<string, InspectSample>();
  for (const name of names) {
    try {
      const read = readInspectSummaries(await zip.read(name, MOST_SUMMARIES));
      if (!read.ok) warnings.push(`${name}: ${read.message}`);
      else for (const each of read.value) found.set(`${each.id} ${each.epoch}`, each);
    } catch (error) {
      if (!(error instanceof ZipError)) throw error;
      warnings.push(error.message);
    }
  }
  return found;
}
