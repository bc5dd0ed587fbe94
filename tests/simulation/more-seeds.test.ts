import { livesOf } from "./living.ts";

// In a file of its own, so that two seeds are lived through at a time.
livesOf(11, 10);
