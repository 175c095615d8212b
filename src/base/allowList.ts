/**
 * Lists of hosts that may be reached, and addresses that no name may lead to. The grammar is that of Harbor's `allowed_hosts` (harbor 0.26,
 * models/task/config.py): names, names below a name ("*.example.com"), addresses and ranges. A list of a person may name a port too.
 */
import type { BlockList } from 'node:net';

/** The configuration reads lists, and few have one: Node's sockets, which take time to load, come with the first. */
const net = () => process.getBuiltinModule('node:net');
/** 4, 6, or 0 for what is no address, as one of a link is none here, which names its interface behind a "%". */
const isIP = (text: string) => (text.includes('%') ? 0 : net().isIP(text));
const isIPv4 = (text: string) => net().isIPv4(text);

/** The hosts that a container without network reaches by the proxy. */
export interface AllowList {
  readonly allow: readonly string[];
}

/** The network of a container: nothing, everything, or some hosts. */
export type Network = 'none' | 'public' | AllowList;

export const isAllowList = (network: unknown): network is AllowList =>
  typeof network === 'object' && network !== null && 'allow' in network && Array.isArray(network.allow);

export interface Target {
  /** A name in lower case without its last dot, or an address as Node writes it. */
  readonly host: string;
  readonly port: number;
}

interface Entry {
  readonly covers: (host: string) => boolean;
  readonly isAddress: boolean;
  readonly port: number | undefined;
}

const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const MOST = 253;

const isName = (text: string): boolean =>
  text.length <= MOST && text.split('.').every((label) => LABEL.test(label));

/** One spelling of an address: "127.1" and "0x7f000001" are 127.0.0.1, as they are to a resolver. Undefined for what is no address and no name. */
function canonicalHost(text: string): string | undefined {
  const lower = text.toLowerCase().replace(/\.$/, '');
  if (!/^[a-z0-9.:[\]-]+$/.test(lower)) return undefined;
  const bracketed = isIP(lower) === 6 ? `[${lower}]` : lower;
  if (!URL.canParse(`http://${bracketed}/`)) return undefined;
  const { hostname } = new URL(`http://${bracketed}/`);
  const host = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
  return isIP(host) !== 0 || isName(host) ? host : undefined;
}

const PORT = /^(\[[^\]]*\]|[^:]*):(\d{1,5})$/;

/** `HOST:PORT`, or `HOST` where there is a port to begin with. Undefined for everything else, such as one with a user's name. */
export function readTarget(text: string, defaultPort?: number): Target | undefined {
  const [, named, digits] = PORT.exec(text) ?? [];
  const host = canonicalHost(named ?? text);
  const port = digits === undefined ? defaultPort : Number(digits);
  if (host === undefined || port === undefined || port < 1 || port > 65_535) return undefined;
  // Outside of brackets the last part of an address would be a port.
  return isIP(host) === 6 && !(named ?? text).startsWith('[') ? undefined : { host, port };
}

const familyOf = (address: string) => (isIPv4(address) ? ('ipv4' as const) : ('ipv6' as const));

function rangeEntry(range: string): ((host: string) => boolean) | undefined {
  const [, address = '', bits = ''] = /^([^/]+)\/(\d{1,3})$/.exec(range) ?? [];
  if (isIP(address) === 0 || Number(bits) > (isIPv4(address) ? 32 : 128)) return undefined;
  const list = listOf([range]);
  // Node also finds an IPv4 address in a range of mapped ones.
  return (host) => isIP(host) !== 0 && list.check(host, familyOf(host));
}

function readEntry(text: string, withPorts: boolean): Entry | string {
  const trimmed = text.trim().toLowerCase();
  if (trimmed.includes('/')) {
    const covers = rangeEntry(trimmed);
    return covers ? { covers, isAddress: true, port: undefined } : `"${text}" is no range of addresses`;
  }
  const [, named, digits] = (isIP(trimmed) === 6 ? undefined : PORT.exec(trimmed)) ?? [];
  const port = digits === undefined ? undefined : Number(digits);
  if (port !== undefined && (!withPorts || port < 1 || port > 65_535))
    return `"${text}" must name a host without a port`;
  const host = (named ?? trimmed).replace(/\.$/, '');
  if (host.startsWith('*.')) {
    const above = canonicalHost(host.slice(2));
    if (above === undefined || isIP(above) !== 0) return `"${text}" must have a name behind "*."`;
    return { covers: (one) => isIP(one) === 0 && one.endsWith(`.${above}`), isAddress: false, port };
  }
  const own = canonicalHost(host);
  if (own === undefined)
    return `"${text}" is no host: a name, "*." and a name, an address, or a range of addresses`;
  return { covers: (one) => one === own, isAddress: isIP(own) !== 0, port };
}

/** The faults of a list's entries, as clauses. `withPorts`: an entry may name a port. */
export const allowListProblems = (entries: readonly string[], { withPorts = false } = {}): string[] =>
  entries.flatMap((entry) => {
    const read = readEntry(entry, withPorts);
    return typeof read === 'string' ? [read] : [];
  });

const WEB_PORTS: readonly number[] = [80, 443];

export interface Reach {
  /** The reason of a refusal, as a clause; else whether the port was named, so that it need not speak TLS. */
  judge(target: Target): { readonly refused: string } | { readonly portNamed: boolean };
  /** The answer for an address that a name has, or that stands for itself. */
  mayConnect(address: string, port: number): boolean;
}

/**
 * `own`: entries of the person who runs the task. Theirs alone open an address that is not public, because a task of others says what it likes,
 * and the name of a host may be made to lead to any address.
 */
export function reachOf(
  network: Network,
  own: readonly string[],
  ofThisMachine: () => readonly string[],
): Reach {
  const read = (list: readonly string[]) =>
    list.map((entry) => readEntry(entry, true)).filter((entry) => typeof entry !== 'string');
  const ownEntries = read(own);
  const entries = [...(isAllowList(network) ? read(network.allow) : []), ...ownEntries];
  const isOpen = network === 'public';
  const opensPort = ({ port: named }: Entry, port: number) =>
    named === undefined ? WEB_PORTS.includes(port) : named === port;
  return {
    judge({ host, port }) {
      const covering = entries.filter(({ covers }) => covers(host));
      if (covering.length === 0 && !isOpen) return { refused: `${host} is not on the list of hosts` };
      const opening = covering.filter((entry) => opensPort(entry, port));
      if (opening.length === 0 && !(isOpen && WEB_PORTS.includes(port)))
        return { refused: `port ${port} of ${host} is not on the list of hosts` };
      return { portNamed: opening.some((entry) => entry.port !== undefined) };
    },
    mayConnect(address, port) {
      const isNamed = ownEntries.some(
        (entry) => entry.isAddress && entry.covers(address) && opensPort(entry, port),
      );
      return isNamed || (isPublicAddress(address) && !ofThisMachine().includes(address));
    },
  };
}

/** Whether a container with such a network may ask for the address of a server outside of it. */
export function reaches(network: Network, url: string): boolean {
  if (network === 'public') return true;
  const { protocol, host } = new URL(url);
  const target = readTarget(host, protocol === 'https:' ? 443 : 80);
  return target !== undefined && !('refused' in reachOf(network, [], () => []).judge(target));
}

export const sameNetwork = (a: Network, b: Network): boolean => JSON.stringify(a) === JSON.stringify(b);

// The registries of IANA: what is not globally reachable, and what holds an IPv4 address inside.

const NOT_PUBLIC = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12'],
  ...['192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15'],
  ...['198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4'],
  ...['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'],
];
/** Everything else of IPv6 is local, mapped, translated or reserved. */
const GLOBAL_UNICAST = '2000::/3';

function listOf(ranges: readonly string[]): BlockList {
  const list = new (net().BlockList)();
  for (const range of ranges) {
    const [address = '', bits] = range.split('/');
    list.addSubnet(address, Number(bits), familyOf(address));
  }
  return list;
}

let lists: { readonly notPublic: BlockList; readonly global: BlockList } | undefined;

export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 0) return false;
  lists ??= { notPublic: listOf(NOT_PUBLIC), global: listOf([GLOBAL_UNICAST]) };
  if (isIPv4(address)) return !lists.notPublic.check(address, 'ipv4');
  return lists.global.check(address, 'ipv6') && !lists.notPublic.check(address, 'ipv6');
}
