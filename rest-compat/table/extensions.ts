import { type RefusalKind, refusals } from "../../infra/kernel/refusal.ts";
import { METHODS, type Method } from "../contract.ts";
import type { Extension } from "../extension.ts";

const NOT_SERVED = "This path is not part of the documented API.";

/** What these paths are refused with; clients can tell them apart by code. */
export const EXTENSION = refusals({
  device_login_unavailable: [
    501,
    "Signing in through a browser is not part of this deployment.",
    "Make an API key with `nodus keys mint` and set it as NODUS_API_KEY.",
  ],
  not_a_session: [
    400,
    "This credential is an API key, not a signed-in session, so there is nothing to sign out of.",
    "Remove the key from your configuration; revoke it with `nodus keys revoke` if it must stop working.",
  ],
  sandbox_files_unavailable: [501, NOT_SERVED, "Read and write files with commands: POST /v1/sandboxes/{id}/exec."],
  sandbox_sleep_unavailable: [
    501,
    NOT_SERVED,
    "Set lifecycle.idle_timeout_s and lifecycle.on_idle; any command wakes a sleeping sandbox.",
  ],
  sandbox_capabilities_unavailable: [501, NOT_SERVED, "Give an image and requirements when you create a sandbox."],
  managed_agents_unavailable: [501, NOT_SERVED, "Use agent runs inside a sandbox: POST /v1/sandboxes/{id}/agent-runs."],
  workspace_transfers_unavailable: [
    501,
    NOT_SERVED,
    "Mount the workspace in a sandbox and move files with commands there.",
  ],
});

/** What the public client and its command line call although the contract has no such path. */
export const EXTENSIONS: readonly Extension[] = [
  { methods: ["get"], path: "/v1/identity", document: "clientIdentity" },
  { methods: ["post"], path: "/v1/console/device/start", open: true, refuse: EXTENSION.device_login_unavailable },
  { methods: ["post"], path: "/v1/console/device/token", open: true, refuse: EXTENSION.device_login_unavailable },
  { methods: ["post"], path: "/v1/session/logout", refuse: EXTENSION.not_a_session },
  ...refused(["get"], EXTENSION.sandbox_capabilities_unavailable, [
    "/v1/sandboxes/capabilities",
    "/v1/sandbox-templates",
  ]),
  ...refused(["post"], EXTENSION.sandbox_files_unavailable, ["/v1/sandboxes/{id}/files"]),
  ...refused(["post"], EXTENSION.sandbox_sleep_unavailable, ["/v1/sandboxes/{id}/sleep", "/v1/sandboxes/{id}/wake"]),
  ...refused(METHODS, EXTENSION.managed_agents_unavailable, ["/v1/agents", "/v1/agents/*"]),
  ...refused(METHODS, EXTENSION.workspace_transfers_unavailable, [
    "/v1/workspaces/{id}/files/*",
    "/v1/workspaces/{id}/transfers",
    "/v1/workspaces/{id}/transfers/*",
    "/v1/research-workspaces/*",
  ]),
];

/** Paths about sandboxes and their data, which answer errors as the documented ones do. */
function refused(methods: readonly Method[], refuse: RefusalKind, paths: readonly string[]): Extension[] {
  return paths.map((path) => ({ methods, path, envelope: "sandbox", refuse }));
}
