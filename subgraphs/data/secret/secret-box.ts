import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";

/** A master key and the name that sealed values remember it by. */
export interface MasterKey {
  id: string;
  /** 32 bytes. */
  key: Uint8Array;
}

/** A value at rest: sealed with a data key of its own, which is wrapped by a master key. */
export interface Sealed {
  masterKeyId: string;
  /** IV, ciphertext and tag of the data key. */
  wrappedKey: Buffer;
  /** IV, ciphertext and tag of the value. */
  ciphertext: Buffer;
}

const KEY_BYTES = 32;
const IV_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Envelope encryption with AES-256-GCM. `context` names the place of the value, such as its id and version, and is
 * authenticated with it: a sealed value that is moved to another row does not open. Every seal has a fresh data key, so
 * a master key wraps many random keys and never meets a value; changing it means wrapping again, not sealing again.
 */
export class SecretBox {
  readonly #keys: ReadonlyMap<string, Uint8Array>;
  readonly #current: MasterKey;
  readonly #random: (bytes: number) => Uint8Array;

  /**
   * New values are wrapped by `current`; `previous` keys only open. Throws for a key that is not 32 bytes.
   *
   * @param random where data keys and initialisation vectors come from: never anything else where secrets are real
   */
  constructor(
    current: MasterKey,
    previous: readonly MasterKey[] = [],
    random: (bytes: number) => Uint8Array = randomBytes,
  ) {
    this.#random = random;
    for (const { id, key } of [current, ...previous])
      if (key.byteLength !== KEY_BYTES) throw new Error(`master key ${id} must have ${KEY_BYTES} bytes`);
    this.#current = current;
    this.#keys = new Map([...previous, current].map((k) => [k.id, k.key]));
  }

  get currentKeyId(): string {
    return this.#current.id;
  }

  /** Master keys that values can be opened with here, the current one among them. */
  get keyIds(): string[] {
    return [...this.#keys.keys()];
  }

  /** Whether values that this master key wrapped can be opened here. */
  has(masterKeyId: string): boolean {
    return this.#keys.has(masterKeyId);
  }

  seal(value: Uint8Array, context: string): Sealed {
    const dataKey = this.#random(KEY_BYTES);
    return {
      masterKeyId: this.#current.id,
      wrappedKey: this.#encrypt(this.#current.key, dataKey, `key:${context}`),
      ciphertext: this.#encrypt(dataKey, value, `value:${context}`),
    };
  }

  /** The value. Throws when the master key is not here, or when anything was changed or moved; never says what. */
  open(sealed: Sealed, context: string): Buffer {
    const dataKey = decrypt(this.#masterKey(sealed.masterKeyId), sealed.wrappedKey, `key:${context}`);
    return decrypt(dataKey, sealed.ciphertext, `value:${context}`);
  }

  /** The same value with its data key wrapped by the current master key. */
  rewrap(sealed: Sealed, context: string): Sealed {
    const dataKey = decrypt(this.#masterKey(sealed.masterKeyId), sealed.wrappedKey, `key:${context}`);
    return {
      masterKeyId: this.#current.id,
      wrappedKey: this.#encrypt(this.#current.key, dataKey, `key:${context}`),
      ciphertext: sealed.ciphertext,
    };
  }

  #masterKey(id: string): Uint8Array {
    const key = this.#keys.get(id);
    if (!key) throw new Error(`master key ${id} is not configured`);
    return key;
  }

  #encrypt(key: Uint8Array, plain: Uint8Array, context: string): Buffer {
    const iv = this.#random(IV_BYTES);
    const cipher = createCipheriv("aes-256-gcm", key, iv, { authTagLength: TAG_BYTES });
    cipher.setAAD(Buffer.from(context, "utf8"));
    return Buffer.concat([iv, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
  }
}

function decrypt(key: Uint8Array, sealed: Uint8Array, context: string): Buffer {
  if (sealed.byteLength < IV_BYTES + TAG_BYTES) throw new Error("a sealed value is cut short");
  const tagStart = sealed.byteLength - TAG_BYTES;
  const decipher = createDecipheriv("aes-256-gcm", key, sealed.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(context, "utf8"));
  decipher.setAuthTag(sealed.subarray(tagStart));
  return Buffer.concat([decipher.update(sealed.subarray(IV_BYTES, tagStart)), decipher.final()]);
}
