/** Which shape the logs of each repository of Multi-SWE-bench have. One that is not here is not gradable, whatever its log says. */
import {
  automake,
  cargo,
  ctest,
  ctestLower,
  go,
  googletest,
  goTopLevel,
  gradle,
  gradleCached,
  maven,
  mavenPlain,
  mavenRunning,
} from './compiledShapes.ts';
import { insomnia, jest, jestAnyBracket, mocha, vitest } from './scriptShapes.ts';
import type { Shape } from './shape.ts';

const SHAPES: readonly (readonly [shape: Shape, repos: string])[] = [
  [maven, 'apache/dubbo fasterxml/jackson-core fasterxml/jackson-databind fasterxml/jackson-dataformat-xml'],
  [mavenPlain, 'alibaba/fastjson2'],
  [mavenRunning, 'google/gson'],
  [gradle, 'elastic/logstash mockito/mockito'],
  [gradleCached, 'googlecontainertools/jib'],
  [go, 'cli/cli'],
  [goTopLevel, 'grpc/grpc-go zeromicro/go-zero'],
  [
    cargo,
    'burntsushi/ripgrep clap-rs/clap nushell/nushell rayon-rs/rayon serde-rs/serde sharkdp/bat sharkdp/fd tokio-rs/bytes tokio-rs/tokio tokio-rs/tracing',
  ],
  [automake, 'facebook/zstd jqlang/jq'],
  [googletest, 'ponylang/ponyc yhirose/cpp-httplib'],
  [ctest, 'fmtlib/fmt nlohmann/json simdjson/simdjson'],
  [ctestLower, 'catchorg/catch2'],
  [jest, 'anuraghazra/github-readme-stats iamkun/dayjs'],
  [jestAnyBracket, 'darkreader/darkreader'],
  [mocha, 'axios/axios'],
  [vitest, 'sveltejs/svelte vuejs/core'],
  [insomnia, 'kong/insomnia'],
];

const BY_REPO = new Map(SHAPES.flatMap(([shape, repos]) => repos.split(' ').map((repo) => [repo, shape])));

/** Only the end of a make run says how these went, so their logs have another shape. */
const ZSTD_BY_MAKE = [
  [1230, 1748],
  [1831, 2703],
] as const;
const EXPRESS_BY_MOCHA: ReadonlySet<number> = new Set([4212, 4852, 5555, 5841]);

export function shapeOf(repo: string, number: number): Shape | undefined {
  const name = repo.toLowerCase();
  if (name === 'facebook/zstd' && ZSTD_BY_MAKE.some(([from, to]) => number >= from && number <= to))
    return undefined;
  if (name === 'expressjs/express') return EXPRESS_BY_MOCHA.has(number) ? mocha : undefined;
  return BY_REPO.get(name);
}
