/** What JSON can say. */
export type JsonValue = null | boolean | number | string | JsonValue[] | { [member: string]: JsonValue };
