import { GATEWAY } from "../gateway/refusals.ts";
import { NOT_IN_RELEASE } from "../infra/kernel/not-in-release.ts";
import { COMMON, type RefusalKind } from "../infra/kernel/refusal.ts";
import { EXTENSION } from "../rest-compat/table/extensions.ts";
import { ACCOUNT } from "../subgraphs/compute/account/account.refusals.ts";
import { API_KEY } from "../subgraphs/compute/api-key/api-key.refusals.ts";
import { MEMBER } from "../subgraphs/compute/member/member.refusals.ts";
import { WORKLOAD } from "../subgraphs/compute/workload/workload.refusals.ts";
import { ASSET, ASSET_REFERENCE } from "../subgraphs/data/asset/asset.refusals.ts";
import { CONNECTION, CONNECTION_REFERENCE } from "../subgraphs/data/connection/connection.refusals.ts";
import { EXPORT } from "../subgraphs/data/export/export.refusals.ts";
import { GITHUB_ACCOUNT } from "../subgraphs/data/github-account/github-account.refusals.ts";
import { LOAD } from "../subgraphs/data/load/load.refusals.ts";
import { SECRET, SECRET_REFERENCE } from "../subgraphs/data/secret/secret.refusals.ts";
import { WEBHOOK } from "../subgraphs/data/webhook/webhook.refusals.ts";
import { POOL } from "../subgraphs/pools/pool/pool.refusals.ts";
import { WORKSPACE } from "../subgraphs/sandboxes/workspace/workspace.refusals.ts";

/** Every refusal of the platform, for the page of error codes. */
export function allRefusals(): RefusalKind[] {
  const catalogues = [
    COMMON,
    NOT_IN_RELEASE,
    GATEWAY,
    EXTENSION,
    ACCOUNT,
    API_KEY,
    MEMBER,
    WORKLOAD,
    ASSET,
    ASSET_REFERENCE,
    EXPORT,
    LOAD,
    GITHUB_ACCOUNT,
    SECRET,
    SECRET_REFERENCE,
    CONNECTION,
    CONNECTION_REFERENCE,
    WEBHOOK,
    POOL,
    WORKSPACE,
  ];
  return catalogues.flatMap((catalogue) => Object.values<RefusalKind>(catalogue));
}
