// A Docker engine that answers. As root on Debian or Ubuntu it is installed and started; elsewhere the person is told what to do.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runQuietly, SetupError, say } from './say.mjs';

const LOG = join(tmpdir(), 'swebatch-dockerd.log');
const PID_FILE = '/var/run/docker.pid';
const READY_TIMEOUT_MS = 60_000;

function quiet(program, args, timeout = 20_000) {
  const done = spawnSync(program, args, { encoding: 'utf8', timeout, stdio: ['ignore', 'pipe', 'pipe'] });
  return {
    ok: done.status === 0,
    absent: done.error?.code === 'ENOENT',
    text: `${done.stdout ?? ''}${done.stderr ?? ''}`,
  };
}

/** `docker info` prints a client part and exits 0 or 1 by version; only a server version proves that an engine answers. */
function engineAnswers() {
  return quiet('docker', ['version', '--format', '{{.Server.Version}}']);
}

/** debian, ubuntu or something made from them; undefined elsewhere. */
export function debianLike(osRelease) {
  const fields = Object.fromEntries(
    osRelease
      .split('\n')
      .map((line) => /^(ID|ID_LIKE)="?([^"]*)"?$/.exec(line.trim()))
      .filter((found) => found !== null)
      .map((found) => [found[1], found[2]]),
  );
  return `${fields.ID ?? ''} ${fields.ID_LIKE ?? ''}`
    .split(/\s+/)
    .some((id) => id === 'debian' || id === 'ubuntu');
}

export function onDebian() {
  return existsSync('/etc/os-release') && debianLike(readFileSync('/etc/os-release', 'utf8'));
}

/** What to tell somebody whose machine we may not or cannot change. */
export function advice({ platform, root, debian, text }) {
  if (platform === 'darwin' || platform === 'win32')
    return 'No Docker engine answers. Install and start Docker Desktop, then run this again.';
  if (/permission denied/i.test(text))
    return 'A Docker engine is there, but this user may not use it. Run "sudo usermod -aG docker $USER" and log in again, or run this as root.';
  if (debian && !root)
    return 'No Docker engine answers. Run "sudo apt-get install docker.io debootstrap && sudo usermod -aG docker $USER", log in again, then run this again; or run this as root, and it does so itself.';
  return 'No Docker engine answers. Install Docker Engine for this system and start it (often "sudo systemctl start docker"), then run this again. The tests that need no engine run with "npm run test:unit".';
}

export function aptInstall(packages) {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  say(`apt-get install ${packages.join(' ')}`);
  try {
    runQuietly('apt-get', ['update', '-qq'], 'apt-get update', { env });
  } catch {
    // The lists of packages that are there may be good enough.
  }
  const install = ['install', '-y', '-qq', '--no-install-recommends', ...packages];
  runQuietly('apt-get', install, `apt-get install ${packages.join(' ')}`, { env });
}

/** Newer Debian has the command line in a package of its own, older ones do not know that name. */
function enginePackages() {
  const cli = quiet('apt-cache', ['show', 'docker-cli']).ok ? ['docker-cli'] : [];
  return ['docker.io', ...cli, 'iptables', 'ca-certificates', 'git'];
}

/** A pid file outlives its engine when a machine is cut off or copied; dockerd then refuses to start. */
function removeStalePidFile() {
  if (!existsSync(PID_FILE)) return;
  const pid = readFileSync(PID_FILE, 'utf8').trim();
  let name = '';
  try {
    name = readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
  } catch {
    // No such process: the file is stale.
  }
  if (name !== 'dockerd') rmSync(PID_FILE, { force: true });
}

async function becomesReady(child) {
  const deadline = Date.now() + READY_TIMEOUT_MS;
  while (Date.now() < deadline) {
    if (engineAnswers().ok) return true;
    if (child && child.exitCode !== null) return false;
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  return false;
}

/** Flags that let an engine start where the kernel or the sandbox lacks something that its log complains of. */
export function flagsFor(log) {
  const flags = [];
  if (/driver not supported|overlay.*(not supported|permission denied|operation not permitted)/i.test(log))
    flags.push('--storage-driver=vfs');
  if (/iptables|ip6tables|nat.*table/i.test(log)) flags.push('--iptables=false', '--ip6tables=false');
  return flags;
}

/** After a crash with a hundred containers, containerd needs longer to clean up than dockerd waits for it; what is cleaned stays clean. */
export const wasCleaningUp = (log) => log.includes('timeout waiting for containerd to start');

/** The lines of an engine's log that say what is wrong; its last ones where none does. */
export function complaints(log) {
  const lines = log.trim().split('\n');
  const wrong = lines.filter((line) => /^failed to|level=(error|fatal)/.test(line));
  return (wrong.length > 0 ? wrong : lines).slice(-6).join('\n');
}

function startDaemon(flags) {
  removeStalePidFile();
  const log = openSync(LOG, 'w');
  const child = spawn('dockerd', flags, {
    detached: true,
    stdio: ['ignore', log, log],
    // It starts itself anew twice for each container: collecting garbage there is a fifth of its processor time.
    env: { GOGC: '400', ...process.env },
  });
  child.on('error', () => {});
  child.unref();
  return child;
}

async function start() {
  if (existsSync('/run/systemd/system')) {
    say('engine: systemctl start docker');
    quiet('systemctl', ['start', 'docker'], READY_TIMEOUT_MS);
    if (await becomesReady()) return;
    throw new SetupError(
      'Docker was started with systemctl, but does not answer. See "systemctl status docker".',
    );
  }
  say(`engine: starting dockerd in the background, log in ${LOG}`);
  if (await becomesReady(startDaemon([]))) return;
  const said = readFileSync(LOG, 'utf8');
  const flags = flagsFor(said);
  if (flags.length > 0 || wasCleaningUp(said)) {
    say(`engine: dockerd did not start here; once more${flags.length > 0 ? ` with ${flags.join(' ')}` : ''}`);
    if (await becomesReady(startDaemon(flags))) return;
  }
  throw new SetupError(
    `dockerd does not start here. What ${LOG} says about it:\n${complaints(readFileSync(LOG, 'utf8'))}`,
  );
}

/** Resolves once an engine answers, and debootstrap is there where it may be needed; SetupError says what to do. */
export async function ensureEngine() {
  const first = engineAnswers();
  const root = process.getuid?.() === 0;
  const debian = process.platform === 'linux' && onDebian();
  if (first.ok) {
    say(`engine: Docker ${first.text.trim()}`);
  } else {
    if (!root || !debian)
      throw new SetupError(advice({ platform: process.platform, root, debian, text: first.text }));
    if (first.absent || quiet('dockerd', ['--version']).absent) aptInstall(enginePackages());
    await start();
    say(`engine: Docker ${engineAnswers().text.trim()}`);
  }
  if (root && debian && quiet('debootstrap', ['--version']).absent)
    aptInstall(['debootstrap', 'debian-archive-keyring']);
}
