import { Refused } from "../../../infra/kernel/refusal.ts";
import { FetchFailed, type FetchPort } from "../../../infra/net/fetch-https.ts";
import { ASSET } from "../asset/asset.refusals.ts";
import { readJson } from "../asset/import/source-answer.ts";
import { GITHUB_ACCOUNT } from "./github-account.refusals.ts";

const VERIFY_MS = 10_000;

/** Asks GitHub whose token it is; `github_token_refused` when it is nobody's, `github_unreachable` when there is no answer. */
export async function verifyGithubToken(fetch: FetchPort, apiUrl: string, token: string): Promise<string> {
  if (!/^[\x21-\x7e]{1,1024}$/.test(token)) throw new Refused(GITHUB_ACCOUNT.github_token_refused, { field: "/token" });
  try {
    const answer = await fetch.get(new URL(`${apiUrl}/user`), {
      authorization: `Bearer ${token}`,
      headers: { accept: "application/vnd.github+json", "x-github-api-version": "2022-11-28" },
      signal: AbortSignal.timeout(VERIFY_MS),
    });
    if (answer.status === 401 || answer.status === 403) {
      await answer.discard();
      throw new Refused(GITHUB_ACCOUNT.github_token_refused, { field: "/token" });
    }
    if (answer.status !== 200) {
      await answer.discard();
      throw new Refused(GITHUB_ACCOUNT.github_unreachable);
    }
    const { login } = ((await readJson(answer)) ?? {}) as { login?: unknown };
    if (typeof login !== "string" || login === "") throw new Refused(GITHUB_ACCOUNT.github_unreachable);
    return login;
  } catch (error) {
    const unread = error instanceof Refused && error.kind === ASSET.source_unavailable;
    if (unread || error instanceof FetchFailed || (error as Error).name === "TimeoutError")
      throw Object.assign(new Refused(GITHUB_ACCOUNT.github_unreachable), { cause: error });
    throw error;
  }
}
