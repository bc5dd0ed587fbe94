import { GUEST_PROXY_PORT } from "../guest/messages.ts";
import type { OrderSpec } from "../protocol.ts";

/** Where a command finds its files; inside a guest these are fixed, without isolation they are host paths. */
export interface CommandPaths {
  code: string;
  inputs: string;
  home: string;
  tmp: string;
}

export function commandPaths(workspace: string): CommandPaths {
  return {
    code: `${workspace}/code`,
    inputs: `${workspace}/inputs`,
    home: `${workspace}/home`,
    tmp: `${workspace}/tmp`,
  };
}

/** Set where the order sets nothing else. */
function defaults(paths: CommandPaths): Record<string, string> {
  return {
    PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    HOME: paths.home,
    USER: "nodus",
    LOGNAME: "nodus",
    LANG: "C.UTF-8",
    TMPDIR: paths.tmp,
    XDG_CACHE_HOME: `${paths.tmp}/cache`,
    PYTHONUNBUFFERED: "1",
  };
}

/** HTTP clients read either spelling; the last switch makes Node's own fetch read them as well. */
function proxyVariables(): Record<string, string> {
  const proxy = `http://127.0.0.1:${GUEST_PROXY_PORT}`;
  const none = "localhost,127.0.0.1,::1";
  return {
    http_proxy: proxy,
    https_proxy: proxy,
    HTTP_PROXY: proxy,
    HTTPS_PROXY: proxy,
    no_proxy: none,
    NO_PROXY: none,
    NODE_USE_ENV_PROXY: "1",
  };
}

/**
 * The environment of an order's command.
 * @param secrets by the variable's name; every name that the order lists must be there
 * @param proxied whether the guest's network is the host's proxy
 */
export function commandEnvironment(
  spec: OrderSpec,
  secrets: Record<string, string>,
  paths: CommandPaths,
  proxied: boolean,
): Record<string, string> {
  const missing = spec.secretEnv.filter((name) => secrets[name] === undefined);
  if (missing.length > 0) throw new Error(`no value came for ${missing.join(", ")}`);
  return {
    ...defaults(paths),
    ...spec.env,
    ...(proxied ? proxyVariables() : {}),
    ...Object.fromEntries(spec.inputs.map((input) => [`NODUS_INPUT_${input.name}`, `${paths.inputs}/${input.name}`])),
    ...Object.fromEntries(spec.secretEnv.map((name) => [name, secrets[name]!])),
    NODUS_STAGE_ID: spec.stageId,
    NODUS_CHECKPOINT_DIR: `${paths.code}/state`,
  };
}
