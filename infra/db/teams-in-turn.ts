/**
 * SQL of an ORDER BY: each team's first row, then each one's second, and so on. A batch of what is undone then has
 * something of every team, however much is undone of one whose rows somebody holds. It reads all that the query finds, so
 * it is for what is few on an ordinary day.
 */
export function teamsInTurn(teamColumn: string, order: string): string {
  return `row_number() over (partition by ${teamColumn} order by ${order}), ${order}`;
}
