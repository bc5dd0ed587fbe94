export function installPackages(root: string, say: (line: string) => void): Promise<void>;
export function firstDifference(root: string): string | null;
