/** Device names that Windows reserves, with any extension. */
const DEVICE = /^(?:con|prn|aux|nul|com[1-9]|lpt[1-9])(?:\.|$)/i;

/** What names of the runner's own files start with. */
const RESERVED_START = "nodus.";

const MAX_NAME_LENGTH = 128;

/** A name that is a plain file name on every system: outputs, and stages that declare outputs. */
export function isPortableName(name: string): boolean {
  return (
    name.length <= MAX_NAME_LENGTH &&
    /^[A-Za-z0-9._-]+$/.test(name) &&
    !/^\.{1,2}$/.test(name) &&
    !name.endsWith(".") &&
    !DEVICE.test(name)
  );
}

/** Whether a result's name is the runner's own, which customers neither give nor see. */
export function isReservedOutputName(name: string): boolean {
  return name.toLowerCase().startsWith(RESERVED_START);
}

/** A stage's id: 1 to 64 letters, digits, `_`, `-` or `.`, starting with a letter, a digit or `_`. */
export function isStageId(id: string): boolean {
  return /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/.test(id);
}

/** An input's name, which becomes part of an environment variable. */
export function isInputName(name: string): boolean {
  return /^[A-Za-z][A-Za-z0-9_]{0,63}$/.test(name);
}
