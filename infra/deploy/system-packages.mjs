import { spawnSync } from "node:child_process";
import { accessSync, constants, existsSync, readFileSync } from "node:fs";
import path from "node:path";

const APT_TIMEOUT_MS = 180_000;

/** Isolation of workloads needs `bwrap`. Installs it where that is ours to do, else says how; never fails. */
export async function installBubblewrap(say) {
  if (onPath("bwrap")) return;
  if (process.geteuid() === 0 && isDebianLike() && onPath("apt-get")) {
    say("Installing bubblewrap, which isolates workloads …");
    if (aptInstall("bubblewrap")) return;
    say("bubblewrap could not be installed.");
  }
  say(`Workloads are isolated with bubblewrap, which is not installed. To install it: ${installCommand()}`);
}

export function onPath(program, searchPath = process.env.PATH ?? "") {
  return searchPath.split(":").some((folder) => {
    try {
      accessSync(path.join(folder, program), constants.X_OK);
      return folder !== "";
    } catch {
      return false; // not in this folder
    }
  });
}

/** Tries with the package lists that are there; they are fetched only when that fails. */
function aptInstall(name) {
  const install = ["install", "-y", "--no-install-recommends", name];
  return apt(install) || (apt(["update"]) && apt(install));
}

function apt(args) {
  const { status } = spawnSync("apt-get", ["-qq", "-o", "DPkg::Lock::Timeout=60", ...args], {
    stdio: "ignore",
    timeout: APT_TIMEOUT_MS,
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
  });
  return status === 0;
}

function isDebianLike() {
  if (!existsSync("/etc/os-release")) return false;
  return /^(ID|ID_LIKE)=.*(debian|ubuntu)/m.test(readFileSync("/etc/os-release", "utf8"));
}

function installCommand() {
  const sudo = process.geteuid() === 0 ? "" : "sudo ";
  if (onPath("dnf")) return `${sudo}dnf install -y bubblewrap`;
  if (onPath("pacman")) return `${sudo}pacman -S --noconfirm bubblewrap`;
  if (onPath("zypper")) return `${sudo}zypper install -y bubblewrap`;
  return `${sudo}apt-get install -y bubblewrap`;
}
