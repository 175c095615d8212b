/** What a mini-swe-agent trajectory says about how it was run, in the words of our configuration: for comparing, and for running it again. */
import { recordedAgentConfig } from '../../agent/replay/readRecording.ts';
import type { ImportedInstance } from './importedRun.ts';

type Sections = Readonly<Record<string, unknown>>;

const IN_AGENT = /_template$|^action_regex$/;
const objectOf = (value: unknown): Sections =>
  typeof value === 'object' && value !== null ? (value as Sections) : {};

/** The agent is the one that `replay` plays. The image is left out: it is the one instance's that it was read from. */
export function publishedArm({
  config,
  version,
  format,
}: Pick<ImportedInstance, 'config' | 'version' | 'format'>): Sections {
  if (Object.keys(objectOf(config.agent)).length === 0) return {};
  const { image: _, ...environment } = objectOf(config.environment);
  const model = Object.entries(objectOf(config.model)).filter(([key]) => !IN_AGENT.test(key));
  try {
    return {
      agent: recordedAgentConfig(
        config,
        version ?? '',
        format === 'mini-swe-agent-1.1' ? format : 'mini-swe-agent-1',
      ),
      environment,
      model: Object.fromEntries(model),
    };
  } catch {
    // An agent of somebody's own, with settings that are not ours: kept as they are.
    return config;
  }
}
