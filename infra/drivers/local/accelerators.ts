/** Memory of one device in GB, by canonical family. A family with several sizes has its common one. */
export const DEVICE_MEMORY_GB: Readonly<Record<string, number>> = {
  A100: 80,
  H100: 80,
  H200: 141,
  B200: 192,
  A10: 24,
  A10G: 24,
  L4: 24,
  L40: 48,
  L40S: 48,
  T4: 16,
  V100: 32,
  "RTX A6000": 48,
  "RTX 3090": 24,
  "RTX 4090": 24,
  "RTX 5090": 32,
};

export interface DeclaredAccelerator {
  /** Canonical family such as `H100` or `RTX 4090`. */
  family: string;
  count: number;
  deviceMemoryGb: number;
}

/** Devices of one declaration; more than a machine has would only be a typing error. */
const MAX_COUNT = 64;

const compact = (name: string) => name.toUpperCase().replace(/[\s_-]/g, "");
const FAMILIES = new Map(Object.keys(DEVICE_MEMORY_GB).map((family) => [compact(family), family]));
FAMILIES.set("A6000", "RTX A6000");

/** The family that a device name means, such as of `NVIDIA H100 80GB HBM3`; null for one that is not known. */
export function familyOf(name: string): string | null {
  const bare = name.replace(/^\s*nvidia\s+/i, "").replace(/^\s*(geforce|tesla|quadro)\s+/i, "");
  const exact = FAMILIES.get(compact(bare));
  if (exact) return exact;
  // Drivers add memory and form factor after the model.
  const words = bare.trim().split(/[\s_-]+/);
  for (let taken = words.length - 1; taken > 0; taken--) {
    const family = FAMILIES.get(compact(words.slice(0, taken).join(" ")));
    if (family) return family;
  }
  return null;
}

/**
 * Reads `NODUS_LOCAL_ACCELERATORS`, such as `H100:2` or `H100:2,L4`. Throws with a sentence that names the part that is
 * wrong and what would be right.
 */
export function parseAccelerators(setting: string): DeclaredAccelerator[] {
  const declared = setting
    .split(",")
    .filter((part) => part.trim() !== "")
    .map(parsePart);
  const twice = declared.find((one, index) => declared.findIndex((other) => other.family === one.family) !== index);
  if (twice) throw new Error(`NODUS_LOCAL_ACCELERATORS names ${twice.family} twice; say its whole number once`);
  return declared;
}

function parsePart(part: string): DeclaredAccelerator {
  const [name = "", count = "1", ...rest] = part.split(":").map((text) => text.trim());
  const family = familyOf(name);
  if (rest.length > 0 || name === "")
    throw new Error(`NODUS_LOCAL_ACCELERATORS: "${part.trim()}" must be FAMILY:COUNT, such as H100:2`);
  if (!family)
    throw new Error(
      `NODUS_LOCAL_ACCELERATORS: "${name}" is no known family; known are ${Object.keys(DEVICE_MEMORY_GB).join(", ")}`,
    );
  if (!/^[1-9]\d?$/.test(count) || Number(count) > MAX_COUNT)
    throw new Error(
      `NODUS_LOCAL_ACCELERATORS: the count in "${part.trim()}" must be a whole number from 1 to ${MAX_COUNT}`,
    );
  return { family, count: Number(count), deviceMemoryGb: DEVICE_MEMORY_GB[family]! };
}
