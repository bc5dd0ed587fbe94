/** What the file system's words for a file or folder that cannot be written mean. */
const UNWRITABLE: Readonly<Record<string, string>> = {
  ENOTDIR: "a file is in its way",
  EACCES: "this user may not",
  EPERM: "nobody may",
  EROFS: "its file system is read-only",
  ENAMETOOLONG: "its name is too long",
  ENOSPC: "its disk is full",
  EDQUOT: "this user's share of its disk is used up",
  ELOOP: "its links lead in a circle",
};

/** What they mean of a folder that cannot be made; of a file they say only that it is there, or is not. */
const UNMADE: Readonly<Record<string, string>> = {
  ...UNWRITABLE,
  EEXIST: "a file is in its way",
  ENOENT: "its file system takes no folders there",
};

/** Why a file or folder cannot be written, in a few words; null when the error is of another kind. */
export function whyUnwritable(error: unknown): string | null {
  return meaningIn(UNWRITABLE, error);
}

/** Why a folder cannot be made or written, in a few words; null when the error is of another kind. */
export function whyUnmade(error: unknown): string | null {
  return meaningIn(UNMADE, error);
}

function meaningIn(meanings: Readonly<Record<string, string>>, error: unknown): string | null {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === "string" && Object.hasOwn(meanings, code) ? meanings[code]! : null;
}
