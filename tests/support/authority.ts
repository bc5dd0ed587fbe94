import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { isIP } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";

const openssl = (folder: string, ...args: string[]) =>
  promisify(execFile)("openssl", args, { cwd: folder, timeout: 20_000 });

/** A certificate with its key, in PEM. */
export interface Issued {
  certPem: string;
  keyPem: string;
}

/** A certificate authority that nobody trusts by default. */
export interface Authority {
  caPem: string;
  /** A server certificate for these names and addresses. */
  issue(hosts: readonly string[]): Promise<Issued>;
}

/** Makes an authority with the `openssl` program (Debian package `openssl`). Short keys and one day: it is for tests. */
export async function testAuthority(): Promise<Authority> {
  return inFolder(async (folder) => {
    await openssl(folder, ...newKey("ca.key"), "-x509", "-days", "1", "-subj", "/CN=Nodus test CA", "-out", "ca.pem");
    const [caPem, caKeyPem] = await Promise.all([read(folder, "ca.pem"), read(folder, "ca.key")]);
    return { caPem, issue: (hosts) => issue(caPem, caKeyPem, hosts) };
  });
}

function issue(caPem: string, caKeyPem: string, hosts: readonly string[]): Promise<Issued> {
  return inFolder(async (folder) => {
    const names = hosts.map((host) => `${isIP(host) ? "IP" : "DNS"}:${host}`).join(",");
    await writeFile(path.join(folder, "ca.pem"), caPem);
    await writeFile(path.join(folder, "ca.key"), caKeyPem, { mode: 0o600 });
    await writeFile(path.join(folder, "names"), `subjectAltName=${names}\nbasicConstraints=critical,CA:FALSE\n`);
    await openssl(folder, ...newKey("server.key"), "-subj", "/CN=Nodus test server", "-out", "server.csr");
    const signedBy = ["-CA", "ca.pem", "-CAkey", "ca.key", "-set_serial", String(Date.now())];
    await openssl(
      folder,
      ...["x509", "-req", "-in", "server.csr", "-days", "1", "-sha256", "-extfile", "names", "-out", "server.pem"],
      ...signedBy,
    );
    return { certPem: await read(folder, "server.pem"), keyPem: await read(folder, "server.key") };
  });
}

function newKey(file: string): string[] {
  return ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-sha256", "-keyout", file];
}

const read = (folder: string, file: string) => readFile(path.join(folder, file), "utf8");

async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(path.join(tmpdir(), "nodus-ca-"));
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
