/**
 * The owner of a container: labels that let anybody prove that the owner is dead. A pid alone proves nothing (pids are reused, hosts
 * differ, machines reboot), so the process start time, the boot id and the host name go with it.
 */
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import type { Owner } from './environment.ts';

export const LABELS = {
  run: 'swebatch.run',
  /** A name says which run it is in its results root alone; an engine serves several. */
  runCreated: 'swebatch.run_created',
  attempt: 'swebatch.attempt',
  instance: 'swebatch.instance',
  pid: 'swebatch.pid',
  pidStart: 'swebatch.pid_start',
  pidNamespace: 'swebatch.pid_ns',
  bootId: 'swebatch.boot_id',
  host: 'swebatch.host',
  started: 'swebatch.started',
  /** The container's own name, which no other container has: labels can be copied. */
  name: 'swebatch.name',
  /** Of a container with services, of these, and of their networks and volumes: their common name. */
  services: 'swebatch.services',
} as const;

/** The label of a service alone: its name in its task. */
export const SERVICE_LABEL = 'swebatch.service';

/** Labels of volumes with a program in them, and of the containers that fill them. */
export const PROGRAM_LABELS = { program: 'swebatch.program', fills: 'swebatch.fills' } as const;

/** Labels of end states that are kept as images; labels of their owners begin with `owner`. */
export const WORK_LABELS = {
  work: 'swebatch.work',
  container: 'swebatch.work_of',
  changes: 'swebatch.work_changes',
  /** When its container was made, by the engine's clock: files of the agent are younger. */
  since: 'swebatch.work_since',
  entry: 'swebatch.work_entry',
  owner: 'swebatch.work_owner.',
} as const;

function readOrNothing(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** Field 22 of /proc/PID/stat: clock ticks since boot. The command name before it may hold spaces and parentheses. */
function startTimeOf(pid: number): string | undefined {
  const stat = readOrNothing(`/proc/${pid}/stat`);
  const afterName = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return afterName[0] === 'Z' ? undefined : afterName[19];
}

const bootId = () => readOrNothing('/proc/sys/kernel/random/boot_id').trim();

/** Two containers on the network of one host share its name and its boot, and see none of each other's processes. */
function pidNamespace(): string | undefined {
  try {
    return readlinkSync('/proc/self/ns/pid');
  } catch {
    return undefined;
  }
}

/** Names this process as the owner of what it starts. `runCreated`: of a run that is recorded. */
export function currentOwner(run: string, attempt: string, runCreated?: string): Owner {
  const namespace = pidNamespace();
  return {
    run,
    ...(runCreated !== undefined && { runCreated }),
    attempt,
    pid: process.pid,
    pidStart: startTimeOf(process.pid) ?? '',
    bootId: bootId(),
    host: hostname(),
    ...(namespace !== undefined && { pidNamespace: namespace }),
  };
}

export function ownerLabels(
  owner: Owner,
  instanceId: string,
  startedAt: Date,
  /** The name of the container that gets them. */
  name?: string,
): Record<string, string> {
  return {
    [LABELS.run]: owner.run,
    ...(owner.runCreated !== undefined && { [LABELS.runCreated]: owner.runCreated }),
    [LABELS.attempt]: owner.attempt,
    [LABELS.instance]: instanceId,
    [LABELS.pid]: String(owner.pid),
    [LABELS.pidStart]: owner.pidStart,
    [LABELS.bootId]: owner.bootId,
    [LABELS.host]: owner.host,
    ...(owner.pidNamespace !== undefined && { [LABELS.pidNamespace]: owner.pidNamespace }),
    [LABELS.started]: startedAt.toISOString(),
    ...(name !== undefined && { [LABELS.name]: name }),
  };
}

export type Liveness = 'alive' | 'dead' | 'unknown';

/** Facts of this machine; tests pass their own. */
export interface MachineFacts {
  readonly host: string;
  readonly bootId: string;
  readonly pidNamespace?: string;
  startTimeOf(pid: number): string | undefined;
}

export function thisMachine(): MachineFacts {
  const namespace = pidNamespace();
  return {
    host: hostname(),
    bootId: bootId(),
    ...(namespace !== undefined && { pidNamespace: namespace }),
    startTimeOf,
  };
}

/** `dead` only when it is proven: same host, and either another boot or no process with that pid and start time where its pids are ours. */
export function isOwnerAlive(
  labels: Readonly<Record<string, string>>,
  machine: MachineFacts = thisMachine(),
): Liveness {
  const pid = Number(labels[LABELS.pid]);
  const start = labels[LABELS.pidStart];
  const boot = labels[LABELS.bootId];
  if (!Number.isInteger(pid) || pid <= 0 || !start || !boot || !machine.bootId) return 'unknown';
  if (labels[LABELS.host] !== machine.host) return 'unknown';
  if (boot !== machine.bootId) return 'dead';
  const namespace = labels[LABELS.pidNamespace];
  if (namespace && machine.pidNamespace && namespace !== machine.pidNamespace) return 'unknown';
  return machine.startTimeOf(pid) === start ? 'alive' : 'dead';
}
