/** The user's keys under `environment:`; environments.ts adds those of one kind. Names are mini-swe-agent's where it has one. 0 turns a limit off. */
import { z } from 'zod';
import { allowListProblems, isAllowList } from '../base/allowList.ts';
import { identity, runtime } from '../base/fieldClass.ts';
import { parseReference } from '../base/imageReference.ts';
import { setting } from '../base/plausible.ts';

/** The answer to a configuration, or a recorded run, with several engines. */
export const ONE_ENGINE =
  'a run has one engine, which DOCKER_HOST or DOCKER_CONTEXT names: what outgrows a machine runs on Kubernetes, or on several machines with a shard each (run --shard K/N, then swebatch join)';

/** `names`: the first is the default. `own`: keys that only one kind of environment has. */
export const environmentSchema = ({
  names,
  own,
  onEngines,
  opensHosts,
}: {
  names: readonly string[];
  own: Readonly<Record<string, z.ZodType>>;
  onEngines: (environment: { environment_class: string }) => boolean;
  opensHosts: (environment: { environment_class: string }) => boolean;
}) =>
  z
    .strictObject({
      environment_class: z
        .string()
        .default(names[0]!)
        .meta(identity(`${names.join(', ')}, or the path of a module that exports createEnvironmentFactory`)),
      hosts: z
        .array(z.unknown())
        .max(0, ONE_ENGINE)
        .optional()
        .meta(runtime('empty, as records of earlier versions have it; a run has one engine')),
      ...(own as Record<never, never>),
      image: z.string().optional().meta(identity('overrides the image of every instance')),
      cwd: z.string().default('/testbed').meta(identity('working directory of every command')),
      env: z.record(z.string(), z.string()).default({}).meta(identity('environment of every command')),
      timeout: setting.seconds().default(60).meta(identity('seconds a command may take')),
      interpreter: z.array(z.string()).min(1).default(['bash', '-c']).meta(identity('what runs a command')),
      network: z
        .union([z.string(), z.strictObject({ allow: z.array(z.string()) })])
        .default('none')
        .meta(identity('none, bridge, a Docker network, or {allow: [HOST]}: these hosts alone')),
      memory: setting
        .size()
        .default('4g')
        .meta(identity('memory limit (bytes, or 512m, 4g); swap is set to the same')),
      pids_limit: setting.processes(0).default(512).meta(identity()),
      cpus: setting.processors().default(2).meta(identity()),
      disk: setting.size().default('20g').meta(identity('what the writable layer may take; 0: no limit')),
      user: z.string().optional().meta(identity()),
      platform: z.string().optional().meta(identity('e.g. linux/amd64; default: what the image says')),
      pull: z.enum(['never', 'missing', 'always']).default('missing').meta(runtime()),
      pull_timeout: setting
        .seconds()
        .default(1200)
        .meta(runtime('seconds without progress before a pull is called stalled')),
      start_timeout: setting
        .seconds()
        .default(120)
        .meta(runtime('seconds for the startup command, and for the supervisor to answer (else plain exec)')),
      container_timeout: setting
        .duration()
        .default('2h')
        .meta(runtime('lifetime after which a container ends by itself (2h, 30m, seconds)')),
      capture_timeout: setting.seconds().default(120).meta(runtime()),
      max_output_bytes: setting
        .heldBytes(4096)
        .default(5 * 1024 * 1024)
        .meta(identity('output kept of one command: head and tail')),
      max_command_bytes: setting
        .heldBytes(131072)
        .default(1024 * 1024)
        .meta(identity()),
      max_patch_bytes: setting
        .heldBytes(1024)
        .default(10 * 1024 * 1024)
        .meta(identity()),
      supervisor: z
        .boolean()
        .default(true)
        .meta(runtime('commands go through a process inside the container, not one exec each')),
      seal_history: z
        .boolean()
        .default(true)
        .meta(identity('remove history after the base commit before the first step')),
      allow_leaky: z
        .boolean()
        .default(false)
        .meta(identity('run instances whose history cannot be sealed; not submittable then')),
      probe: z
        .string()
        .regex(/^[A-Za-z_][\w.]*$/, 'must be the name of a Python package, auto or off')
        .default('auto')
        .meta(
          runtime(
            'Python package that must be importable; auto: that of a known repository, in Docker; off: none',
          ),
        ),
      startup_command: z
        .string()
        .optional()
        .meta(identity('template over the instance, run once before the first step')),
    })
    .superRefine(({ environment_class, image, network }, { addIssue }) => {
      const listed = isAllowList(network) ? allowListProblems(network.allow, { withPorts: true }) : [];
      for (const message of listed) addIssue({ code: 'custom', path: ['network', 'allow'], message });
      if (isAllowList(network) && !opensHosts({ environment_class }))
        addIssue({
          code: 'custom',
          path: ['network'],
          message: `a list of hosts is kept by a proxy that ${environment_class} environments do not have: set environment.environment_class to ${names[0]}, or environment.network to none`,
        });
      // The engine is asked for it by address, so a name such as ../../x would ask for something else.
      const parsed =
        image === undefined || !onEngines({ environment_class }) ? undefined : parseReference(image);
      if (parsed?.ok === false) addIssue({ code: 'custom', path: ['image'], message: parsed.message });
    });
export type EnvironmentConfig = z.infer<ReturnType<typeof environmentSchema>>;
