import { Field, ID, InterfaceType } from "type-graphql";

/** Relay's node: every entity of the graph is one. */
@InterfaceType("Node", {
  autoRegisterImplementations: false,
  description: "An object that can be read again by its id alone.",
})
export abstract class Node {
  @Field(() => ID, { description: "The object's id, unique over all kinds.", simple: true }) id!: string;
}
