/** A server of tools that a task gives its agent, by the Model Context Protocol. */
export type McpServer =
  | {
      readonly name: string;
      readonly transport: 'stdio';
      /** A program of the container. */
      readonly command: string;
      readonly args: readonly string[];
    }
  | { readonly name: string; readonly transport: 'sse' | 'streamable-http'; readonly url: string };

export type McpTransport = McpServer['transport'];

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** Whether a container without network reaches the address. */
export const isOwnLoopback = (url: string): boolean =>
  URL.canParse(url) && LOOPBACK.test(new URL(url).hostname);
