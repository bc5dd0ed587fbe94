import type pg from "pg";
import { ProtocolViolation } from "./message-guard.ts";

/**
 * A query of the driver's protocol that names every answer there is: one that a kind of query does not expect ends the
 * connection. The driver calls these by name and trusts that they are there.
 */
export abstract class ExpectedAnswers implements pg.Submittable {
  abstract submit(connection: pg.Connection): void;
  /** An error of the database or of the connection; nothing follows. */
  abstract handleError(error: Error): void;
  /** The database is done with the query. */
  abstract handleReadyForQuery(): void;

  handleRowDescription(_message: unknown): void {
    unexpected("a description");
  }

  handleDataRow(): void {
    unexpected("a row");
  }

  handleCommandComplete(_message: unknown): void {
    unexpected("an end");
  }

  handlePortalSuspended(): void {
    unexpected("a pause");
  }

  handleEmptyQuery(): void {
    unexpected("an empty query");
  }

  handleCopyInResponse(): void {
    unexpected("a request for rows");
  }

  handleCopyData(): void {
    unexpected("a copied row");
  }
}

function unexpected(answer: string): never {
  throw new ProtocolViolation(`${answer} that nobody asked for`);
}
