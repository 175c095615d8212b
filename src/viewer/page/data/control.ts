/** Asks something of a run that works. The server answers only this page: same origin, and a header that no form can set. */

/** Resolves to what the run answered, or to why it was not asked. */
export async function askRun(run: string, command: string, argument: string | null): Promise<string> {
  try {
    const response = await fetch('api/control', {
      method: 'POST',
      credentials: 'same-origin',
      headers: { 'Content-Type': 'application/json', 'X-Swebatch-Control': '1' },
      body: JSON.stringify({ run, command, argument }),
    });
    const body = await response.text();
    if (!response.headers.get('content-type')?.startsWith('application/json')) return body.trim();
    const { answer, error } = JSON.parse(body) as { answer?: string; error?: string };
    return answer ?? error ?? '';
  } catch (error) {
    return `the viewer does not answer: ${String(error)}`;
  }
}
