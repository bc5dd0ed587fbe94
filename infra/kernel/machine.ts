/** Where a row goes on an event: the next state, or `ignore` (legal, nothing to do), or `refuse` (a caller's mistake). */
export type Move<S extends string> = S | "ignore" | "refuse";

/** A state machine as a table: every state has a cell for every event, so nothing is left to chance. */
export interface Machine<S extends string, E extends string> {
  readonly name: string;
  readonly states: readonly S[];
  readonly events: readonly E[];
  readonly terminal: ReadonlySet<S>;
  /** Pure: what `event` does in `state`. */
  decide(state: S, event: E): Move<S>;
  /** The table as text, for the test that reviews every cell. */
  print(): string;
}

/** Builds a machine and checks that terminal states lead nowhere. */
export function machine<const S extends string, const E extends string>(definition: {
  name: string;
  states: readonly S[];
  events: readonly E[];
  terminal: readonly NoInfer<S>[];
  table: Record<NoInfer<S>, Record<NoInfer<E>, Move<NoInfer<S>>>>;
}): Machine<S, E> {
  const { name, states, events, table } = definition;
  const terminal = new Set<S>(definition.terminal);
  for (const state of terminal)
    for (const event of events)
      if (states.includes(table[state][event] as S))
        throw new Error(`${name}: ${state} is terminal, yet ${event} leaves it`);
  return {
    name,
    states,
    events,
    terminal,
    decide: (state, event) => table[state][event],
    print: () => states.map((s) => `${s}: ${events.map((e) => `${e}→${table[s][e]}`).join("  ")}`).join("\n"),
  };
}
