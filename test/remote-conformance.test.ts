// Short settings; part of `npm test`. The same suite, through a master on a SQLite file.
import { conformance } from "../src/store/conformance/suite.ts";
import { remoteHarness } from "./support/served.ts";
import { sqliteFileHarness } from "./support/stores.ts";

conformance(remoteHarness(sqliteFileHarness()));
