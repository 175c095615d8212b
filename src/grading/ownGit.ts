/**
 * git as the grader itself runs it, as root, in a tree that a patch has been applied to. The repository's configuration may be the
 * patch's: it names programs (core.fsmonitor, hooks, filters, diff drivers) that git would run.
 */

/** Where git must work on the repository itself: hooks and fsmonitor are off. git before 2.31 does not know these variables. */
export const QUIET_GIT: Readonly<Record<string, string>> = {
  GIT_CONFIG_COUNT: '2',
  GIT_CONFIG_KEY_0: 'core.fsmonitor',
  GIT_CONFIG_VALUE_0: 'false',
  GIT_CONFIG_KEY_1: 'core.hooksPath',
  GIT_CONFIG_VALUE_1: '/dev/null',
};

const CLEAN =
  'GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_OPTIONAL_LOCKS=0 GIT_PAGER=cat';

/**
 * Reads the tree in the working directory with a repository of our own around the index and the objects, so that no configuration is
 * read at all. A work tree whose `.git` is not a folder keeps its configuration, without the settings that are known to run programs.
 */
export const readingGit = (args: string): string =>
  `if [ -f .git/index ] && g=$(mktemp -d); then mkdir "$g/refs" && cp .git/index "$g/index" && echo ref: refs/heads/none >"$g/HEAD"; ` +
  `${CLEAN} HOME="$g" XDG_CONFIG_HOME="$g" GIT_DIR="$g" GIT_WORK_TREE="$PWD" GIT_OBJECT_DIRECTORY="$PWD/.git/objects" git ${args}; c=$?; rm -rf "$g"; (exit $c); ` +
  `else ${CLEAN} git -c core.fsmonitor=false -c core.hooksPath=/dev/null -c diff.external= ${args}; fi`;
