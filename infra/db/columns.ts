/**
 * What hot reads need to know of an entity class: its table, and a select list that spells columns as properties, so
 * that a plain row is an instance after one prototype change (measured: microseconds a row against tens for the unit of work).
 */
interface TableShape {
  name: string;
  /** Properties in order of declaration; `count` ones arrive as bigint and are numbers. */
  properties: { property: string; count: boolean }[];
  select: string | null;
}

// biome-ignore lint/complexity/noBannedTypes: decorators hand over constructors as Function
type Class = Function;
const shapes = new Map<Class, TableShape>();

function shapeOf(target: Class): TableShape {
  let shape = shapes.get(target);
  if (!shape) {
    shape = { name: "", properties: [], select: null };
    shapes.set(target, shape);
  }
  return shape;
}

export function addColumn(target: Class, property: string, count: boolean): void {
  shapeOf(target).properties.push({ property, count });
}

export function addTable(target: Class, name: string): void {
  shapeOf(target).name = name;
}

/** The column's name of a property, as MikroORM's naming strategy makes it. */
export function columnName(property: string): string {
  return property.replace(/([a-z0-9])([A-Z])/g, "$1_$2").toLowerCase();
}

/** `schema.table` of an entity class. */
export function tableOf(target: Class): string {
  const shape = shapeOf(target);
  if (!shape.name) throw new Error(`${target.name} is no table`);
  return shape.name;
}

/** `id, tenant_id as "tenantId", …` of an entity class, qualified with the alias `t`. */
export function selectList(target: Class): string {
  const shape = shapeOf(target);
  shape.select ??= shape.properties.map((p) => `t.${columnName(p.property)} as "${p.property}"`).join(", ");
  return shape.select;
}

/** Turns a row of `selectList` into an instance, in place. */
export function instance<T extends object>(target: abstract new () => T, row: Record<string, unknown>): T {
  for (const p of shapeOf(target).properties) {
    if (p.count && typeof row[p.property] === "bigint") row[p.property] = Number(row[p.property]);
  }
  return Object.setPrototypeOf(row, target.prototype as object) as T;
}
