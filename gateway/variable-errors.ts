import {
  coerceInputValue,
  GraphQLError,
  type GraphQLSchema,
  isInputType,
  isNonNullType,
  typeFromAST,
  type VariableDefinitionNode,
} from "graphql";

/**
 * What is wrong with an operation's variables, by place and type. Unlike graphql-js it never repeats a value: what was
 * sent beside the mistake may be a secret, and answers end up in other people's logs.
 */
export function variableErrors(
  schema: GraphQLSchema,
  definitions: readonly VariableDefinitionNode[],
  variables: Readonly<Record<string, unknown>>,
): GraphQLError[] {
  return definitions.flatMap((definition) => errorsOf(schema, definition, variables));
}

function errorsOf(
  schema: GraphQLSchema,
  definition: VariableDefinitionNode,
  variables: Readonly<Record<string, unknown>>,
): GraphQLError[] {
  const name = definition.variable.name.value;
  const type = typeFromAST(schema, definition.type);
  const complain = (text: string) =>
    new GraphQLError(`Variable "$${name}" ${text}`, { nodes: definition, extensions: { code: "BAD_USER_INPUT" } });
  if (!isInputType(type)) return [complain("is of no type that can be sent.")];
  const value = variables[name];
  if (value === undefined) {
    const missing = isNonNullType(type) && definition.defaultValue === undefined;
    return missing ? [complain(`of required type "${type}" was not provided.`)] : [];
  }
  const errors: GraphQLError[] = [];
  coerceInputValue(value, type, (path, _value, error) => {
    const at = path.length > 0 ? `at "${[name, ...path].join(".")}" ` : "";
    errors.push(complain(`${at}is refused. ${withoutValue(error)}`));
  });
  return errors;
}

/** Messages about fields, objects and nulls name types only; the one about a single value repeats it. */
function withoutValue({ message, originalError }: GraphQLError): string {
  const expected = /^Expected type "[^"]*"/.exec(message)?.[0];
  if (originalError && expected) return `${expected}.`;
  if (/^(Field "|Expected |Exactly one key )/.test(message) && !originalError) return message;
  const type =
    /^(\w+) cannot represent/.exec(message)?.[1] ?? /" (?:does not exist in|is not one of) "?(\w+)/.exec(message)?.[1];
  return type ? `Expected type "${type}".` : "It is not what its type asks for.";
}
