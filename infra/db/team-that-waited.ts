/** Writes into the error of a wait in vain whose command it was, and answers the error. */
export function ofTeamThatWaited<T>(error: T, teamId: string): T {
  if (error instanceof Error) Object.assign(error, { teamId });
  return error;
}

/** Whose command waited in vain; null where that is nobody's or not known. */
export function teamThatWaited(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  const { teamId } = error as { teamId?: unknown };
  return typeof teamId === "string" ? teamId : teamThatWaited(error.cause);
}
