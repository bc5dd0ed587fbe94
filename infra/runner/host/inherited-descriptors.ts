import { closeSync, readdirSync, readFileSync } from "node:fs";

const O_CLOEXEC = 0o2000000;

/**
 * Closes what this process inherited beyond its standard streams. Whoever started the platform may have left files
 * open, and every guest would inherit them in turn. What Node opens for itself is marked close-on-exec.
 */
export function closeInheritedDescriptors(): void {
  for (const name of readdirSync("/proc/self/fd")) {
    const fd = Number(name);
    if (fd > 2 && isInheritable(fd)) closeSync(fd);
  }
}

function isInheritable(fd: number): boolean {
  try {
    const flags = /^flags:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "utf8"))?.[1] ?? "";
    return (Number.parseInt(flags, 8) & O_CLOEXEC) === 0;
  } catch {
    return false; // the listing's own descriptor, closed by now
  }
}
