// Soak: the same suite once more, through two links: as the children of a worker that goes through a master. `npm test` runs it through one.
import { conformance } from "../../src/store/conformance/suite.ts";
import { remoteHarness } from "../support/served.ts";
import { sqliteFileHarness } from "../support/stores.ts";

conformance(remoteHarness(remoteHarness(sqliteFileHarness())));
