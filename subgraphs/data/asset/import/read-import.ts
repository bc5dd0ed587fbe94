import { LIMITS } from "../../../../infra/kernel/limits.ts";
import { Refused } from "../../../../infra/kernel/refusal.ts";
import { archiveKindOf } from "../archive/archive-kind.ts";
import { ASSET } from "../asset.refusals.ts";
import type { GithubRequest, HuggingFaceRequest, SourceRequest, UrlRequest } from "./source-request.ts";
import { nameOf } from "./source-request.ts";

/** Where an import may come from, as callers spell it. */
export type ImportKind = "github" | "huggingface" | "url" | "connection_query";

/** An import as it was asked for; null and absent are the same. */
export interface ImportFields {
  kind: ImportKind;
  url?: string | null;
  repo?: string | null;
  ref?: string | null;
  files?: string[] | null;
  token?: string | null;
  connectionId?: string | null;
  sql?: string | null;
  format?: string | null;
  branch?: string | null;
  reuse?: boolean | null;
}

/** A source to fetch, and the credential that came along. The credential is used once and kept nowhere. */
export interface SourceImport {
  source: SourceRequest;
  token: string | null;
}

const MEMBERS: Readonly<Record<ImportKind, readonly (keyof ImportFields)[]>> = {
  github: ["repo", "ref", "token"],
  huggingface: ["repo", "ref", "files", "token"],
  url: ["url"],
  connection_query: ["connectionId", "sql", "format", "branch", "reuse"],
};
/** These have a value of their own when nobody gives one, so that value says nothing about what was meant. */
const INERT: Partial<ImportFields> = { format: "parquet", reuse: false };

/** Refuses a member that the kind does not take: whoever sent it expects it to do something. */
export function requireMembersOf(fields: ImportFields): void {
  for (const name of Object.keys(fields) as (keyof ImportFields)[]) {
    const value = fields[name];
    if (name === "kind" || MEMBERS[fields.kind].includes(name)) continue;
    if (value === null || value === undefined || value === "" || INERT[name] === value) continue;
    const field = `/${name === "connectionId" ? "connection_id" : name}`;
    if (name === "token") throw new Refused(ASSET.token_not_allowed, { field });
    throw new Refused(ASSET.invalid_import, {
      field,
      message: `An import of kind ${fields.kind} takes no ${field.slice(1)}.`,
    });
  }
}

/** Checks an import of a source, after `requireMembersOf`; `invalid_import`, `invalid_ref` or `token_not_allowed` name the field to blame. */
export function readSourceImport(fields: ImportFields): SourceImport {
  return { source: sourceOf(fields), token: tokenOf(fields.token) };
}

function sourceOf(fields: ImportFields): SourceRequest {
  switch (fields.kind) {
    case "github":
      return githubOf(fields);
    case "huggingface":
      return huggingFaceOf(fields);
    case "url":
      return urlOf(fields.url);
    default:
      throw new Error(`${fields.kind} is not a source that is fetched`);
  }
}

const GITHUB_REPO =
  /^(?:https:\/\/github\.com\/)?([A-Za-z0-9][A-Za-z0-9-]{0,38})\/([A-Za-z0-9._-]{1,100}?)(?:\.git)?\/?$/;

function githubOf({ repo, ref }: ImportFields): GithubRequest {
  const [, owner, name] = GITHUB_REPO.exec(repo ?? "") ?? [];
  if (!owner || !name || isDots(name))
    throw invalid("/repo", "repo must be owner/name, or https://github.com/owner/name.");
  return { kind: "github", owner, repo: name, ref: refOf(ref) };
}

const HUGGING_FACE_REPO =
  /^(?:https:\/\/huggingface\.co\/(datasets\/)?)?((?:[A-Za-z0-9][A-Za-z0-9._-]{0,95}\/)?[A-Za-z0-9][A-Za-z0-9._-]{0,95})\/?$/;

function huggingFaceOf({ repo, ref, files }: ImportFields): HuggingFaceRequest {
  const text = repo ?? "";
  const [, inDatasets, path] = HUGGING_FACE_REPO.exec(text) ?? [];
  if (!path) throw invalid("/repo", "repo must be a dataset's owner/name, or its https://huggingface.co address.");
  // A bare name is a dataset's; a model is named by its address.
  const type = inDatasets || !text.startsWith("https:") ? "datasets" : "models";
  return { kind: "huggingface", type, repo: path, ref: refOf(ref), files: patternsOf(files) };
}

function patternsOf(files: string[] | null | undefined): string[] | null {
  if (files === null || files === undefined) return null;
  if (files.length === 0 || files.length > LIMITS.assetImportPatterns)
    throw invalid("/files", `files must hold 1 to ${LIMITS.assetImportPatterns} patterns, or be left out.`);
  const bad = files.findIndex((p) => p === "" || Buffer.byteLength(p) > LIMITS.assetPathBytes || hasControl(p));
  if (bad >= 0)
    throw invalid(`/files/${bad}`, `A pattern has 1 to ${LIMITS.assetPathBytes} bytes and no control characters.`);
  return files;
}

function urlOf(url: string | null | undefined): UrlRequest {
  const text = url ?? "";
  if (text.length > LIMITS.assetUrlLength || hasControl(text) || !URL.canParse(text))
    throw invalid("/url", `url must be an HTTPS address of at most ${LIMITS.assetUrlLength} characters.`);
  const parsed = new URL(text);
  if (parsed.protocol !== "https:") throw invalid("/url", "url must start with https://.");
  if (parsed.username || parsed.password)
    throw new Refused(ASSET.token_not_allowed, { field: "/url", message: "url must not carry a name or password." });
  parsed.hash = "";
  const request: UrlRequest = { kind: "url", url: parsed.href };
  archiveKindOf(nameOf(request), "/url"); // refused before anything is fetched
  return request;
}

/** What git allows in a name of a branch, tag or commit, which also keeps it inside its place in an address. */
function refOf(ref: string | null | undefined): string {
  const text = ref || "main";
  const forbidden = /[\s~^:?*[\\]|\.\.|\/\/|@\{|^[/.-]|\/\.|[/.]$|\.lock(?:\/|$)/;
  if (Buffer.byteLength(text) > LIMITS.assetRefBytes || hasControl(text) || forbidden.test(text))
    throw new Refused(ASSET.invalid_ref, { field: "/ref" });
  return text;
}

function tokenOf(token: string | null | undefined): string | null {
  if (!token) return null;
  if (!/^[\x21-\x7e]{1,4096}$/.test(token))
    throw invalid("/token", "token must be 1 to 4096 printable ASCII characters without spaces.");
  return token;
}

const isDots = (name: string) => /^\.+$/.test(name);

function hasControl(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
  return /[\u0000-\u001f\u007f]/.test(text) || !text.isWellFormed();
}

function invalid(field: string, message: string): Refused {
  return new Refused(ASSET.invalid_import, { field, message });
}
