const ORIGIN = "https://wandb.ai/";
/** A character after the run's name says that the name is whole. */
const RUN_PAGE =
  /https:\/\/wandb\.ai\/([^/\s]{1,384})\/([^/\s]{1,384})\/runs\/([A-Za-z0-9_-]{1,64})(?=[^A-Za-z0-9_-])/g;

/** Longest that a page's address can be: what of a text may belong to one that goes on in the next. */
export const RUN_PAGE_BYTES = 1024;

/**
 * Addresses of wandb runs that a text names, once each, in order: of the one entity and project only, and spelled anew, so
 * nothing of a command's making but the run's name is in them. One at the very end of the text may not be over.
 */
export function runPages(text: string, entity: string, project: string): string[] {
  if (!text.includes(ORIGIN)) return [];
  const pages = new Set<string>();
  for (const [, ofEntity = "", ofProject = "", run = ""] of text.matchAll(RUN_PAGE))
    if (decoded(ofEntity) === entity && decoded(ofProject) === project)
      pages.add(`${ORIGIN}${encodeURIComponent(entity)}/${encodeURIComponent(project)}/runs/${run}`);
  return [...pages];
}

/** A segment of an address as text; null when it is none. */
function decoded(segment: string): string | null {
  try {
    return decodeURIComponent(segment);
  } catch {
    return null; // a stray percent sign
  }
}
