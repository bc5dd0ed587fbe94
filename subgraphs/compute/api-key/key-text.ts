import { createHash, randomBytes } from "node:crypto";

/** A fresh key: `nk_` and 256 random bits in 43 URL-safe characters, so a plain hash of it cannot be searched. */
export function newKeyText(): string {
  return `nk_${randomBytes(32).toString("base64url")}`;
}

/** What is kept of a key: SHA-256 of its text, in hex. */
export function keyHash(text: string): string {
  return createHash("sha256").update(text, "utf8").digest("hex");
}

/** True for what may be a key at all: 16 to 256 printable ASCII characters without spaces, as an operator may choose one. */
export function isKeyText(text: string): boolean {
  return /^[!-~]{16,256}$/.test(text);
}
