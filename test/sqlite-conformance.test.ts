// Short settings; part of `npm test`.
import { conformance } from "../src/store/conformance/suite.ts";
import { sqliteFileHarness, sqliteMemoryHarness } from "./support/stores.ts";

conformance(sqliteMemoryHarness());
conformance(sqliteFileHarness());
