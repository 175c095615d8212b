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
