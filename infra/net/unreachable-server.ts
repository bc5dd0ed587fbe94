/** A server that a setting leads to can't be used; the message names the setting and says what to do, without passwords. */
export class UnreachableServer extends Error {
  override readonly name = "UnreachableServer";

  constructor(variable: string, sentence: string, cause?: unknown) {
    super(`${variable}: ${sentence}`, { cause });
  }
}

/**
 * What the operating system said about a way to `place` (such as `db.internal:5432`), in a sentence; null when the error
 * is of another kind. `program` is what should answer there.
 */
export function wayFailure(error: unknown, place: string, program: string): string | null {
  const { code, message = "" } = (error ?? {}) as { code?: unknown; message?: string };
  switch (code) {
    case "ECONNREFUSED":
    case "ENOENT":
      return `nothing listens at ${place} (${code}). Start ${program} there, or correct the address.`;
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `no address is known for the host of ${place} (${code}). Correct the name, or see to name resolution.`;
    case "ETIMEDOUT":
    case "EHOSTUNREACH":
    case "ENETUNREACH":
    case "ECONNRESET":
      return `${place} does not answer (${code}). See that ${program} runs there and that no firewall is between.`;
  }
  // Drivers give up waiting with words of their own.
  return /^(timeout expired|connect ETIMEDOUT|Connection terminated due to connection timeout)/.test(message)
    ? `${place} does not answer in time. See that ${program} runs there and that no firewall is between.`
    : null;
}
