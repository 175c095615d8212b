/** The kinds of datasets beside SWE-bench's own rows, in the order in which they are asked. */
import type { ContainerNeeds } from '../../base/containerNeeds.ts';
import type { McpServer } from '../../base/mcpServer.ts';
import type { Instance } from '../instance.ts';
import type { DatasetKind, RawRow, TaskBuild, TaskStep } from './datasetKind.ts';
import { harbor } from './harbor/harbor.ts';
import { live } from './liveRows.ts';
import { multiSwe } from './multiSweRows.ts';
import { pro } from './pro/proTasks.ts';
import { r2e } from './r2eRows.ts';
import { rebenchV2 } from './rebenchV2Rows.ts';

const DATASET_KINDS: readonly DatasetKind[] = [harbor, multiSwe, pro, live, rebenchV2, r2e];

const kindNamed = (name: string | undefined): DatasetKind | undefined =>
  DATASET_KINDS.find((kind) => kind.name === name);

/** The kind of a raw row; undefined for a row of SWE-bench. */
export const kindOfRow = (raw: RawRow): DatasetKind | undefined =>
  DATASET_KINDS.find(({ rows }) => rows?.is(raw));

/** The kind whose tasks a folder holds. */
export const kindOfFolder = (dir: string): DatasetKind | undefined =>
  DATASET_KINDS.find(({ folders }) => folders?.is(dir));

/** Why an instance cannot run here; undefined when it can. */
export const refusalOf = (instance: Instance): string | undefined =>
  kindNamed(instance.kind)?.refusal?.(instance);

/** What an instance asks of its containers; undefined where it asks nothing. */
export const needsOf = (instance: Instance): ContainerNeeds | undefined =>
  kindNamed(instance.kind)?.container?.(instance);

/** The most processors that one of its containers asks for; 0 where it asks for none. */
export const processorsOf = (instance: Instance): number =>
  kindNamed(instance.kind)?.processors?.(instance) ?? 0;

/** Images of an instance that no registry has. */
export const buildsOf = (instance: Instance): readonly TaskBuild[] =>
  kindNamed(instance.kind)?.builds?.(instance) ?? [];

/** The image that the recipe of an instance makes; undefined where it has none. */
export const builtImageOf = (instance: Instance): string | undefined =>
  kindNamed(instance.kind)?.builtImage?.(instance);

/** Servers of tools that the agent of an instance is to have. */
export const mcpServersOf = (instance: Instance): readonly McpServer[] =>
  kindNamed(instance.kind)?.mcpServers?.(instance) ?? [];

/** The steps of a task of several; undefined for any other. */
export const stepsOf = (instance: Instance): readonly TaskStep[] | undefined =>
  kindNamed(instance.kind)?.steps?.(instance);

export const keepsWork = (instance: Instance): boolean => kindNamed(instance.kind)?.keepsWork ?? false;

/** Seconds; undefined where the task sets no limit of its own. */
export const agentTimeoutOf = (instance: Instance): number | undefined =>
  kindNamed(instance.kind)?.agentTimeoutS?.(instance);
