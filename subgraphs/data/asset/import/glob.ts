/** One step of a pattern: any run of characters, any one character, or one of a set. */
type Step = { any: true } | { any: false; fits(character: string): boolean };

/**
 * Whether a path fits a shell pattern: `*` stands for any run of characters, slashes included, `?` for one character,
 * `[a-z]` and `[!a-z]` for one of a set or none of it. A pattern that ends with a slash means everything below it.
 * Never takes longer than the product of both lengths, whatever the pattern is.
 */
export function globMatcher(pattern: string): (path: string) => boolean {
  const steps = stepsOf(pattern.endsWith("/") ? `${pattern}*` : pattern);
  return (path) => fits(steps, [...path]);
}

/** Goes back to the latest `*` alone: an earlier one could not do better than it did. */
function fits(steps: readonly Step[], characters: readonly string[]): boolean {
  let step = 0;
  let at = 0;
  let star = -1;
  let starAt = 0;
  while (at < characters.length) {
    const wanted = steps[step];
    if (wanted?.any) {
      star = step++;
      starAt = at;
    } else if (wanted && !wanted.any && wanted.fits(characters[at]!)) {
      step++;
      at++;
    } else if (star >= 0) {
      step = star + 1;
      at = ++starAt;
    } else return false;
  }
  return steps.slice(step).every((rest) => rest.any);
}

function stepsOf(pattern: string): Step[] {
  const characters = [...pattern];
  const steps: Step[] = [];
  for (let at = 0; at < characters.length; at++) {
    const character = characters[at]!;
    const set = character === "[" ? setAt(characters, at) : null;
    if (character === "*") {
      if (!steps.at(-1)?.any) steps.push({ any: true });
    } else if (character === "?") steps.push({ any: false, fits: () => true });
    else if (set) {
      steps.push({ any: false, fits: set.fits });
      at = set.end;
    } else steps.push({ any: false, fits: (other) => other === character });
  }
  return steps;
}

/** The set that opens at a bracket; null when it is never closed, and the bracket means itself. */
function setAt(characters: readonly string[], open: number): { fits(c: string): boolean; end: number } | null {
  const inverted = characters[open + 1] === "!";
  const start = open + (inverted ? 2 : 1);
  // A closing bracket right at the start is a member of the set.
  const end = characters.indexOf("]", start + 1);
  if (end < 0) return null;
  const members = characters.slice(start, end);
  const within = (character: string) =>
    members.some((member, i) => {
      const isRange = members[i + 1] === "-" && i + 2 < members.length;
      return isRange ? member <= character && character <= members[i + 2]! : member === character;
    });
  return { fits: (character) => within(character) !== inverted, end };
}
